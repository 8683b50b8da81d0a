"""One stage of a pipeline: its mathematics, its weights, and the records it keeps."""

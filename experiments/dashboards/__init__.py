"""Run folders in the dashboards that laboratories watch: TensorBoard, Weights & Biases, MLflow.

steps        the numbers of a run folder, by update
sent         what a dashboard already has of a run, so that nothing is sent twice
dashboard    the interface of a dashboard
tensorboard  wandb  mlflow
export       new steps of all runs of a folder, to one dashboard
"""

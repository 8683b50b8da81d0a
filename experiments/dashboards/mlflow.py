"""MLflow: a database in the folder, unless MLFLOW_TRACKING_URI names a server."""

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from time import time

from experiments.dashboards.dashboard import Dashboard, ExportedRun, OpenRun
from experiments.dashboards.steps import Step

TAG = "paci.run"
LONGEST = 6000  # characters of a parameter
METRICS, PARAMETERS = 1000, 100  # at most in one request
ENDS = {"completed": "FINISHED", "preempted": "KILLED", "running": "RUNNING"}


class MLflow(Dashboard):
    package = "mlflow"

    def __init__(self, folder: Path):
        super().__init__(folder)
        import mlflow

        folder.mkdir(parents=True, exist_ok=True)
        own = f"sqlite:///{folder.absolute()}/mlflow.db"
        self.uri = os.environ.get("MLFLOW_TRACKING_URI", own)
        self._client = mlflow.MlflowClient(tracking_uri=self.uri)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "paci")
        experiment = self._client.get_experiment_by_name(name)
        self._experiment = (
            experiment.experiment_id if experiment else self._client.create_experiment(name)
        )

    def open(self, run: ExportedRun) -> OpenRun:
        place = f"{self.folder.absolute()}/{run.label}"
        found = self._client.search_runs([self._experiment], f"tags.`{TAG}` = '{place}'")
        if found:
            return _Run(self._client, found[0].info.run_id)
        made = self._client.create_run(self._experiment, run_name=run.label, tags={TAG: place})
        opened = _Run(self._client, made.info.run_id)
        opened.send_settings(run)
        return opened

    def how_to_look(self) -> str:
        return f"mlflow server --backend-store-uri {self.uri}"


class _Run(OpenRun):
    def __init__(self, client, id: str):
        self._client, self._id = client, id

    def send_settings(self, run: ExportedRun) -> None:
        from mlflow.entities import Param

        params = (Param(key, str(value)[:LONGEST]) for key, value in run.settings().items())
        while batch := list(islice(params, PARAMETERS)):
            self._client.log_batch(self._id, params=batch)

    def send(self, steps: Sequence[Step]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time())
        metrics = (
            Metric(name, value, now, step.number)
            for step in steps
            for name, value in step.values.items()
        )
        while batch := list(islice(metrics, METRICS)):
            self._client.log_batch(self._id, metrics=batch)

    def close(self, state: str) -> None:
        self._client.set_tag(self._id, "paci.state", state)
        status = ENDS.get(state, "FAILED")
        if status == "RUNNING":
            self._client.update_run(self._id, status)
        else:
            self._client.set_terminated(self._id, status)

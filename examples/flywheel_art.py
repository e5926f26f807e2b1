# What ART does through W&B's artifacts, through this server's own routes: supervised training, forks and downloads.
# Needs only the standard library. `model` is anything with a project and a name, such as an art.TrainableModel.
import io
import json
import tarfile
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen


class Flywheel:
    def __init__(self, base_url: str, api_key: str) -> None:
        self.base_url, self.api_key = base_url.rstrip("/"), api_key

    def train_sft(self, model, examples: list[dict], **config) -> dict:
        """Trains on [{"messages": […], "tools": […]?}, …] and waits for the end. Returns the job, with its new step.

        `config`: batch_size, learning_rate (a number, or one per batch), assistant_turns.
        """
        body = {"model_id": self.model_id(model), "training_data": examples, "config": config}
        job = self._json("POST", "/preview/sft-training-jobs", body)
        while job["status"] in ("PENDING", "RUNNING"):
            time.sleep(0.5)
            job = self._json("GET", f"/preview/training-jobs/{job['id']}")
        if job["status"] != "COMPLETED":
            raise RuntimeError(f"Training job failed: {job['error_message']}")
        return job

    def fork(self, model, name: str, step: int | None = None) -> dict:
        """A new model in the same project that begins with a step of another (by default the newest)."""
        source = {"model_id": self.model_id(model), "step": step}
        return self._json("POST", "/preview/models", {"project": model.project, "name": name, "from": source})

    def download(self, model, folder: str, step: int | str = "latest") -> Path:
        """Writes adapter_config.json and adapter_model.safetensors of a step, as PEFT and vLLM load them."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        with self._open("GET", f"/preview/models/{self.model_id(model)}/checkpoints/{step}/adapter") as response:
            with tarfile.open(fileobj=io.BytesIO(response.read())) as archive:
                for file in archive:
                    (target / Path(file.name).name).write_bytes(archive.extractfile(file).read())
        return target

    def model_id(self, model) -> str:
        found = self._json("GET", f"/preview/models?{urlencode({'project': model.project, 'name': model.name})}")["data"]
        if not found:
            raise LookupError(f"There is no model {model.project}/{model.name}.")
        return found[-1]["id"]

    def _json(self, method: str, path: str, body: dict | None = None):
        with self._open(method, path, body) as response:
            return json.load(response)

    def _open(self, method: str, path: str, body: dict | None = None):
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return urlopen(Request(self.base_url + path, data, headers, method=method))

# The same loop with OpenPipe ART (pip install openpipe-art): only base_url and api_key point here.
#   OPENAI_API_KEY=<token with the scopes inference and training> python examples/08-train-art.py
import asyncio
import os

import art
from art.serverless.backend import ServerlessBackend
from flywheel_art import Flywheel

PROMPTS = ["What is a flywheel?", "Tell me about the sea.", "Why is the sky blue?", "What is bread made of?"]
MAX_TOKENS = 24
URL = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
KEY = os.environ["OPENAI_API_KEY"]


async def rollout(model: art.TrainableModel, prompt: str) -> art.Trajectory:
    trajectory = art.Trajectory(messages_and_choices=[{"role": "user", "content": prompt}])
    completion = await model.openai_client().chat.completions.create(
        model=model.get_inference_name(), messages=trajectory.messages(), max_tokens=MAX_TOKENS, temperature=1, top_p=1
    )
    choice = completion.choices[0]
    trajectory.messages_and_choices.append(choice)
    trajectory.reward = 1 - completion.usage.completion_tokens / MAX_TOKENS
    return trajectory


async def main() -> None:
    backend = ServerlessBackend(base_url=URL, api_key=KEY)
    model = art.TrainableModel(name="brief-art", project="examples", base_model=os.environ.get("MODEL", "flywheel-mini"))
    await model.register(backend)
    for _ in range(int(os.environ.get("STEPS", "8"))):
        groups = await art.gather_trajectory_groups(
            art.TrajectoryGroup(rollout(model, prompt) for _ in range(8)) for prompt in PROMPTS
        )
        result = await backend.train(model, groups, learning_rate=2e-5)
        # not result.metrics: a job without anything to learn has none
        rewards = [trajectory.reward for group in groups for trajectory in group]
        print(f"step {result.step}: mean reward before it {sum(rewards) / max(1, len(rewards)):.3f}")
    await model.delete_checkpoints()
    print(f"{model.get_inference_name()} is at step {await model.get_step()}")
    await backend.close()

    # what ART does through W&B's artifacts, without them
    server = Flywheel(URL, KEY)
    example = {"messages": [{"role": "user", "content": PROMPTS[0]}, {"role": "assistant", "content": "A heavy wheel."}]}
    job = server.train_sft(model, [example], learning_rate=1e-4)
    print(f"supervised step {job['step']}, downloaded to {server.download(model, 'brief-art')}")


asyncio.run(main())

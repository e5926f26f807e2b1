# The same loop with OpenPipe ART (pip install openpipe-art): only base_url and api_key point here.
#   OPENAI_API_KEY=<token with the scopes inference and training> python examples/08-train-art.py
import asyncio
import os

import art
from art.serverless.backend import ServerlessBackend

PROMPTS = ["What is a flywheel?", "Tell me about the sea.", "Why is the sky blue?", "What is bread made of?"]
MAX_TOKENS = 24


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
    backend = ServerlessBackend(
        base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"), api_key=os.environ["OPENAI_API_KEY"]
    )
    model = art.TrainableModel(name="brief-art", project="examples", base_model=os.environ.get("MODEL", "flywheel-mini"))
    await model.register(backend)
    for _ in range(int(os.environ.get("STEPS", "8"))):
        groups = await art.gather_trajectory_groups(
            art.TrajectoryGroup(rollout(model, prompt) for _ in range(8)) for prompt in PROMPTS
        )
        result = await backend.train(model, groups, learning_rate=2e-5)
        print(f"step {result.step}: mean reward before it {result.metrics['reward']:.3f}")
    await model.delete_checkpoints()
    print(f"{model.get_inference_name()} is at step {await model.get_step()}")
    await backend.close()


asyncio.run(main())

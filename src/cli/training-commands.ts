// Adds the commands about training.

import type { Command } from "commander";
import { addDemoCommand } from "./demo/demo.command.ts";
import { addModelsCommand } from "./models.command.ts";
import { addTrainCommand } from "./train.command.ts";

export function addTrainingCommands(program: Command): void {
  addTrainCommand(program);
  addModelsCommand(program);
  addDemoCommand(program);
}

// The commands about training, for the program to take in one go.

import type { Command } from "commander";
import { addDemoCommand } from "./demo/demo.command.ts";
import { addModelsCommand } from "./models.command.ts";
import { addTrainCommand } from "./train.command.ts";

export function addTrainingCommands(program: Command): void {
  addTrainCommand(program);
  addModelsCommand(program);
  addDemoCommand(program);
}

// `flywheel chat`: talk to a server from the terminal. With a prompt, it prints one answer. Without one, it is a
// conversation. It works with any compatible server.
import type { Command } from "commander";
import { addTargetOptions, type TargetOptions, targetOf } from "./server-target.ts";
import { addTalkOptions, type TalkOptions, talk } from "./talk.ts";

interface ChatOptions extends TargetOptions, TalkOptions {
  model?: string;
}

export function addChatCommand(program: Command): void {
  const command = program
    .command("chat")
    .description("Talk to a server from the terminal.")
    .argument("[prompt...]", "one question; without it, a conversation starts")
    .option("--model <NAME>", "model or adapter; default: the server's model");
  addTalkOptions(command);
  addTargetOptions(command);
  command.action((prompt: string[], options: ChatOptions) => talk(targetOf(options), options.model, prompt, options));
}

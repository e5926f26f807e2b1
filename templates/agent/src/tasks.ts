// What the agent practises: a prompt for each rollout, and what a good answer is.

export interface Task {
  prompt: string;
}

const QUESTIONS = [
  "Is it a good idea? Yes, no or maybe?",
  "Do you like it? Yes or no?",
  "Shall we go? No or yes?",
  "Can it fly? Yes, no or maybe?",
  "Are you sure? Yes or no?",
  "Will they come? Maybe, yes or no?",
  "Was it fun? Yes, no or maybe?",
  "Is the soup hot? Yes or no?",
];

/** The tasks of one step. */
export function tasks(): Task[] {
  return QUESTIONS.map((prompt) => ({ prompt }));
}

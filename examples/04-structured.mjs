// Forces the output to follow a JSON Schema, then to be one of a list of choices.
//   npm install --no-save openai
//   OPENAI_API_KEY=<token> node examples/04-structured.mjs
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8000/v1" });
const schema = {
  type: "object",
  properties: { name: { type: "string", maxLength: 20 }, age: { type: "integer", minimum: 0, maximum: 130 } },
  required: ["name", "age"],
  additionalProperties: false,
};
const person = await client.chat.completions.create({
  model: "",
  messages: [{ role: "user", content: "Invent a person." }],
  response_format: { type: "json_schema", json_schema: { name: "person", schema } },
  max_completion_tokens: 200,
});
console.log(JSON.parse(person.choices[0].message.content));

const mood = await client.chat.completions.create({
  model: "",
  messages: [{ role: "user", content: "Is this friendly or hostile? 'Nice to see you!'" }],
  structured_outputs: { choice: ["friendly", "hostile"] },
});
console.log(mood.choices[0].message.content);

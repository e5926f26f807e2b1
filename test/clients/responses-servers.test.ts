// Two servers on one PostgreSQL: what one of them keeps, the other one reads, continues and deletes. With the OpenAI SDK.
import OpenAI from "openai";
import { expect, it } from "vitest";
import { usePostgres } from "../postgres/use-postgres.ts";
import { shared } from "../support/shared-server.ts";
import { API_KEY, startTestServer } from "../support/test-server.ts";

const postgres = usePostgres();
let database: string | undefined;

const server = () =>
  shared(async () => {
    database ??= await postgres().createDatabase();
    return startTestServer({ config: { database } });
  });
const [one, other] = [server(), server()];
const clientOf = ({ url }: { url: string }) => new OpenAI({ baseURL: `${url}/v1`, apiKey: API_KEY, maxRetries: 0 });

it("a conversation goes on at the other server, and is deleted for both", async () => {
  const [here, there] = [clientOf(one), clientOf(other)];
  const stream = await here.responses.create({ model: "fake", input: "say:one", stream: true, store: true });
  let first: OpenAI.Responses.Response | undefined;
  for await (const event of stream) if (event.type === "response.completed") first = event.response;
  const id = first!.id;

  const read = await there.responses.retrieve(id);
  expect(read.output).toEqual(first!.output);
  const items = await there.responses.inputItems.list(id);
  expect(items.data).toMatchObject([{ type: "message", role: "user" }]);

  const second = await there.responses.create({ model: "fake", input: "say:two", previous_response_id: id });
  expect(second.output_text).toBe("two");
  const third = await here.responses.create({ model: "fake", input: "say:three", previous_response_id: second.id });
  expect(third).toMatchObject({ output_text: "three", previous_response_id: second.id });
  // the whole conversation is in its prompt
  expect(third.usage!.input_tokens).toBeGreaterThan(second.usage!.input_tokens);
  expect(second.usage!.input_tokens).toBeGreaterThan(first!.usage!.input_tokens);

  await there.responses.delete(id);
  await expect(here.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
  await expect(
    here.responses.create({ model: "fake", input: "say:four", previous_response_id: third.id }),
  ).rejects.toMatchObject({ status: 404, param: "previous_response_id" });
});

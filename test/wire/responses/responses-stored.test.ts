// Responses that are kept: continuing, reading, deleting and referring to them, over HTTP.
import { describe, expect, it, vi } from "vitest";
import { StoreUnreachable } from "../../../src/errors/faults.ts";
import { sharedServer } from "../../support/shared-server.ts";
import { API_KEY, looseFetch } from "../../support/test-server.ts";
import { add, asking, CALL, responsesServer } from "./responses-requests.ts";

const server = responsesServer();
const { create, events, promptOf, refuse } = asking(server);

describe("stored responses", () => {
  const asOther = { authorization: "Bearer other-key" };

  it("are continued, with their own instructions only", async () => {
    const first = await create({ input: "say:one", instructions: "first rules" });
    const second = await create({ input: "say:two", previous_response_id: first.id });
    expect(second.previous_response_id).toBe(first.id);
    const prompt = await promptOf({ input: "say:three", previous_response_id: second.id, instructions: "new rules" });
    expect(prompt).toBe(
      "[system]new rules\n[user]say:one\n[assistant]one\n[user]say:two\n[assistant]two\n[user]say:three\n[assistant]",
    );
  });

  it("are continued with the results of their calls", async () => {
    const first = await create({ input: `say:<think>hm</think>${CALL}`, tools: [add] });
    const call = first.output.at(-1);
    const input = [{ type: "function_call_output", call_id: call.call_id, output: "say:2" }];
    const second = await create({ input, previous_response_id: first.id, tools: [add] });
    expect(second.output.at(-1).content[0].text).toBe("2");
  });

  it("are continued after a call that the budget cut or the model garbled", async () => {
    const cut = await create({ input: `say:${CALL}`, tools: [add], max_output_tokens: CALL.indexOf("1") });
    expect(cut).toMatchObject({ status: "incomplete", output: [{ type: "function_call", status: "incomplete" }] });
    const garbled = await create({ input: `say:${CALL.replace("1", "one")}`, tools: [add] });
    expect(garbled).toMatchObject({ status: "completed", output: [{ type: "function_call", status: "completed" }] });
    for (const { id, output } of [cut, garbled]) {
      expect(() => JSON.parse(output[0].arguments)).toThrow();
      const input = [{ type: "function_call_output", call_id: output[0].call_id, output: "no JSON" }];
      expect(await promptOf({ input, previous_response_id: id })).toMatch(
        /\n\[assistant\]<add \{\}>\n\[tool\]no JSON\n\[assistant\]$/,
      );
    }
  });

  it("are read, listed and deleted, by their workspace only", async () => {
    const response = await create({
      input: [
        { role: "user", content: "a" },
        { role: "user", content: "say:b" },
      ],
    });
    const path = `/v1/responses/${response.id}`;
    const read = await server.get(path);
    expect(read.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await read.json()).toEqual(response);
    const list = await (await server.get(`${path}/input_items?order=asc&limit=1`)).json();
    expect(list).toMatchObject({ object: "list", data: [{ type: "message", content: "a" }], has_more: true });
    const rest = await (await server.get(`${path}/input_items?order=asc&after=${list.last_id}`)).json();
    expect(rest).toMatchObject({ data: [{ content: "say:b" }], has_more: false });
    expect((await (await server.get(`${path}/input_items`)).json()).data[0].content).toBe("say:b");
    expect((await server.get(`${path}/input_items?limit=0`)).status).toBe(400);
    const lost = await server.get(`${path}/input_items?after=msg_nobody`);
    expect(lost.status).toBe(400);
    expect((await lost.json()).error).toMatchObject({ param: "after", message: expect.stringContaining("msg_nobody") });
    expect((await server.get(`${path}?stream=true`)).status).toBe(400);
    expect((await server.post(`${path}/cancel`, {})).status).toBe(400);
    for (const [method, at] of [
      ["GET", path],
      ["DELETE", path],
      ["GET", `${path}/input_items`],
    ] as const) {
      expect((await looseFetch(server.url + at, { method, headers: asOther })).status).toBe(404);
    }
    const stolen = await server.post("/v1/responses", { input: "x", previous_response_id: response.id }, asOther);
    expect(stolen.status).toBe(404);
    const headers = { authorization: `Bearer ${API_KEY}` };
    const deleted = await looseFetch(server.url + path, { method: "DELETE", headers });
    expect(await deleted.json()).toEqual({ id: response.id, object: "response", deleted: true });
    expect((await server.get(path)).status).toBe(404);
    expect((await looseFetch(server.url + path, { method: "DELETE", headers })).status).toBe(404);
  });

  it("cannot be continued when a part of their conversation is gone", async () => {
    const first = await create({ input: "say:one" });
    const second = await create({ input: "say:two", previous_response_id: first.id });
    await looseFetch(`${server.url}/v1/responses/${first.id}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${API_KEY}` },
    });
    const error = await refuse({ input: "x", previous_response_id: second.id });
    expect(error).toMatchObject({
      status: 404,
      param: "previous_response_id",
      message: expect.stringContaining(first.id),
    });
  });

  it("give their items to references", async () => {
    const first = await create({ input: "say:one" });
    const prompt = await promptOf({
      input: [
        { type: "item_reference", id: first.output[0].id },
        { role: "user", content: "say:two" },
      ],
    });
    expect(prompt).toBe("[assistant]one\n[user]say:two\n[assistant]");
  });

  it("keep references as references, and show the items", async () => {
    const first = await create({ input: "say:one" });
    const reference = { type: "item_reference", id: first.output[0].id };
    const second = await create({ input: [reference, reference, { role: "user", content: "say:two" }] });
    expect(await promptOf({ input: "say:three", previous_response_id: second.id })).toBe(
      "[assistant]one\n[assistant]one\n[user]say:two\n[assistant]two\n[user]say:three\n[assistant]",
    );
    const list = await (await server.get(`/v1/responses/${second.id}/input_items?order=asc`)).json();
    expect(list.data).toMatchObject([{ id: reference.id }, { id: reference.id }, { content: "say:two" }]);
    expect(list.data[0]).toMatchObject({ type: "message", role: "assistant", content: [{ text: "one" }] });
    await looseFetch(`${server.url}/v1/responses/${first.id}`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${API_KEY}` },
    });
    const left = await (await server.get(`/v1/responses/${second.id}/input_items?order=asc`)).json();
    expect(left.data[0]).toEqual(reference);
    expect(await refuse({ input: "x", previous_response_id: second.id })).toMatchObject({
      status: 404,
      param: "previous_response_id",
    });
  });

  it("are refused when they would load more than a body may have", async () => {
    const cut = { truncation: "auto", max_output_tokens: 16 };
    const { id } = await create({ input: "x".repeat(50_000), ...cut });
    const item = { type: "item_reference", id: `msg_${id.slice(5)}_in0` };
    const error = await refuse({ input: Array.from({ length: 100 }, () => item), ...cut });
    expect(error).toMatchObject({
      status: 400,
      type: "BadRequestError",
      message: expect.stringContaining("4194304 bytes"),
    });
    const many = Array.from({ length: 8193 }, () => item);
    expect(await refuse({ input: many })).toMatchObject({
      status: 400,
      message: expect.stringContaining("8192 items"),
    });
  });

  it("hold the fields that are known, and nothing else", async () => {
    const junk = "x".repeat(10_000);
    const input = [{ role: "user", content: [{ type: "input_text", text: "say:one", junk }], junk }];
    const { id } = await create({ input });
    const { data } = await (await server.get(`/v1/responses/${id}/input_items`)).json();
    expect(data).toEqual([
      {
        id: `msg_${id.slice(5)}_in0`,
        type: "message",
        role: "user",
        content: [{ type: "input_text", text: "say:one" }],
      },
    ]);
  });

  it("are not kept if the client says so", async () => {
    const response = await create({ input: "say:one", store: false });
    expect(response.store).toBe(false);
    expect((await server.get(`/v1/responses/${response.id}`)).status).toBe(404);
  });

  it("are answered without being kept when the store is unreachable", async () => {
    const save = vi.spyOn(server.service.responses, "save").mockRejectedValue(new StoreUnreachable("gone"));
    const log = vi.spyOn(server.service.log, "error").mockImplementation(() => {});
    try {
      expect(await create({ input: "say:one" })).toMatchObject({ status: "completed", store: false });
      expect((await events({ input: "say:one" })).at(-1)).toMatchObject({
        type: "response.completed",
        response: { store: false },
      });
      expect(log).toHaveBeenCalledTimes(2);
    } finally {
      save.mockRestore();
      log.mockRestore();
    }
  });

  describe("on a server that keeps none", () => {
    const forgetful = sharedServer({ config: { keepResponses: "0/30d" } });

    it("say so", async () => {
      expect(await create({ input: "say:x" }, forgetful)).toMatchObject({ store: false });
      const error = await refuse({ input: "x", previous_response_id: "resp_1" }, forgetful);
      expect(error).toMatchObject({ status: 400, message: expect.stringContaining("--keep-responses") });
    });
  });

  describe("on a server that keeps little", () => {
    const small = sharedServer({ config: { keepResponses: "8Ki/30d" } });

    it("make room for new ones, and are refused where they would never fit", async () => {
      const ids: string[] = [];
      for (let i = 0; i < 8; i++) ids.push((await create({ input: "say:x" }, small)).id);
      const statuses = await Promise.all(ids.map(async (id) => (await small.get(`/v1/responses/${id}`)).status));
      expect([statuses[0], statuses.at(-1)]).toEqual([404, 200]);
      const large = { input: "x".repeat(10_000), truncation: "auto", max_output_tokens: 16 };
      expect(await create(large, small)).toMatchObject({ store: false });
      expect(await refuse({ ...large, store: true }, small)).toMatchObject({
        status: 400,
        param: "store",
        message: expect.stringMatching(/of the 8192 that .* of which \d{4} are used/),
      });
    });
  });
});

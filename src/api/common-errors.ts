// The replies of every route that say what went wrong, in one table, and an OpenAPI document in which routes refer to it
// instead of repeating it.

import { ErrorBody } from "./request/schema-parts.ts";

type Responses = Record<string, object>;

export interface DescribedOperation {
  tags?: string[];
  security?: unknown[];
  requestBody?: object;
  responses?: Responses;
}

interface CommonError {
  description: string;
  /** Which routes give it; every route that names its status does. */
  given(operation: DescribedOperation, path: string): boolean;
}

const isClosed = ({ security }: DescribedOperation) => security?.length !== 0;

/** By status. */
const COMMON_ERRORS: Record<string, CommonError> = {
  400: { description: "The request is not valid.", given: ({ requestBody }) => requestBody !== undefined },
  401: { description: "The token is missing, unknown, revoked or expired.", given: isClosed },
  403: { description: "The token lacks the scope that the route needs.", given: isClosed },
  404: { description: "The caller has nothing of this name.", given: (_, path) => path.includes("{") },
  409: { description: "The request conflicts with what is there, or was ended.", given: () => false },
  413: { description: "The body is too large.", given: ({ requestBody }) => requestBody !== undefined },
  422: { description: "A field is not valid.", given: () => false },
  429: {
    description: "The server is full, or a limit is reached.",
    given: ({ tags }) => tags?.includes("inference") === true,
  },
  503: { description: "Try again later.", given: isClosed },
};

/** Shares the errors of all operations: `components.responses` has one of each shape and status. */
export function withCommonErrors<D extends { paths?: object; components?: object }>(document: D): D {
  const responses: Responses = {};
  const schemas: Responses = {};
  const paths = Object.entries((document.paths ?? {}) as Record<string, Record<string, DescribedOperation>>);
  for (const [path, methods] of paths) {
    for (const operation of Object.values(methods)) operation.responses = shared(operation, path);
  }
  return { ...document, components: { ...document.components, schemas, responses } };

  function shared(operation: DescribedOperation, path: string): Responses {
    const own = operation.responses ?? {};
    const shapes = Object.entries(own)
      .filter(([status]) => status in COMMON_ERRORS)
      .map(([, reply]) => schemaOf(reply));
    const shape = shapes[0] ?? ErrorBody;
    const all: Responses = { ...own };
    for (const [status, { description, given }] of Object.entries(COMMON_ERRORS)) {
      if (!(status in own) && !given(operation, path)) continue;
      const schema = status in own ? schemaOf(own[status]!) : shape;
      const name = String((schema as { title?: string }).title);
      schemas[name] = schema;
      const content = { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } };
      responses[`${name}${status}`] = { description, content };
      all[status] = { $ref: `#/components/responses/${name}${status}` };
    }
    return all;
  }
}

function schemaOf(reply: object): object {
  const { content = {} } = reply as { content?: Record<string, { schema?: object }> };
  return Object.values(content)[0]?.schema ?? ErrorBody;
}

import { Ajv2020 } from 'ajv/dist/2020.js';
import type { OpenApiDocument, OpenApiOperation } from '../../src/api/openapi.ts';
import type { RawReply } from './raw.ts';

/** Each lists disagreements with the document; empty when they agree. */
export interface Agreement {
  /** Status, media type, and schema of a response body. */
  reply(method: string, target: string, reply: RawReply): string[];
  /** Body of a request. */
  request(method: string, target: string, body: string): string[];
}

/** Checks exchanges against the service's own description. */
export function agreementWith(document: OpenApiDocument): Agreement {
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'urn:rdctl:wire', components: document.components });

  function schemaProblems(schema: object, body: string): string[] {
    let value: unknown;
    try {
      value = JSON.parse(body);
    } catch {
      return [`the body is not JSON: ${body.slice(0, 200)}`];
    }
    const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"urn:rdctl:wire#/');
    const check = ajv.compile(JSON.parse(text));
    return check(value) ? [] : [ajv.errorsText(check.errors)];
  }

  function requestProblems(method: string, target: string, body: string): string[] {
    const described = operationOf(document, method, target)?.requestBody;
    if (described === undefined) return body === '' ? [] : ['a body, where none is described'];
    if (body === '') return described.required ? ['no body, where one is required'] : [];
    return schemaProblems(described.content['application/json']?.schema ?? {}, body);
  }

  function replyProblems(method: string, target: string, reply: RawReply): string[] {
    if (method === 'OPTIONS') return [];
    const operation = operationOf(document, method, target);
    if (operation === undefined) {
      return [400, 401, 403, 404, 413].includes(reply.status) ? [] : [`${method} ${target} is not described`];
    }
    const described = operation.responses[String(reply.status)];
    if (described === undefined) return [`status ${reply.status} is not described`];
    if (method === 'HEAD') return reply.body === '' ? [] : ['HEAD has a body'];
    if (described.content === undefined) return reply.body === '' ? [] : [`a body, where none is described`];
    const [[type, media] = ['', undefined]] = Object.entries(described.content);
    if (reply.headers['content-type'] !== type) return [`media type ${reply.headers['content-type']}, not ${type}`];
    if (type.startsWith('application/json')) return schemaProblems(media?.schema ?? {}, reply.body);
    const inner = media?.schema.contentSchema;
    return typeof inner === 'object' && inner !== null ? schemaProblems(inner, reply.body) : [];
  }

  return { reply: replyProblems, request: requestProblems };
}

/** The operation that a request line means, ignoring case and one trailing slash. */
export function operationOf(document: OpenApiDocument, method: string, target: string): OpenApiOperation | undefined {
  const [sent = ''] = target.split('?', 1);
  // A target may include the server (RFC 9112, 3.2.2).
  const path = sent
    .toLowerCase()
    .replace(/^http:\/\/[^/]*/, '')
    .replace(/(?<=.)\/$/, '');
  const item = Object.entries(document.paths).find(([known]) => known.toLowerCase() === path)?.[1];
  return item?.[(method === 'HEAD' ? 'GET' : method).toLowerCase()];
}

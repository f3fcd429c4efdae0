import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { bytesOf, parseJson } from '../body.ts';
import type { ApiContext } from '../context.ts';
import { documented } from '../route-doc.ts';
import { TEXT_TYPE, TEXTS } from '../wire-texts.ts';

const DOC = documented({
  summary: 'Remove everything of this installation, and end',
  description:
    'The answer comes first. Then the API stops listening, the backend stops, and settings, data, extensions, logs and what was ' +
    'changed in files of the user go. Snapshots that exist stay.',
  body: {
    description: 'Whether downloads stay too; they go unless told',
    schema: { type: 'object', properties: { keepSystemImages: { type: 'boolean' } } },
    required: false,
  },
  replies: {
    202: { description: 'it begins now', body: 'text', example: TEXTS.factoryReset },
    400: { description: 'the body is not what it should be', body: 'text' },
  },
});

/** `PUT /v1/factory_reset` (api facts, 15.2). */
export function factoryResetRoutes(app: FastifyInstance, context: ApiContext): void {
  const { checkFactoryReset, requestFactoryReset, log } = context;
  app.put('/v1/factory_reset', {
    ...DOC,
    onResponse: (request, reply, done) => {
      if (reply.statusCode === 202) {
        const cache = !keepsDownloads(bytesOf(request));
        log('info', 'factory reset requested over the API', { cache });
        requestFactoryReset({ cache });
      }
      done();
    },
    handler: (request, reply) => {
      checkFactoryReset({ cache: !keepsDownloads(bytesOf(request)) });
      reply.code(202).header('Connection', 'close').type(TEXT_TYPE).send(TEXTS.factoryReset);
    },
  });
}

/** A destructive call is not guessed at: what is not understood is refused, an array, too (api facts, 8). */
function keepsDownloads(bytes: Buffer): boolean {
  if (bytes.length === 0) return false;
  const body = parseJson(bytes);
  if (!isObject(body)) throw new RdError('ERR_BODY_INVALID', TEXTS.notJson);
  const { keepSystemImages = false, ...others } = body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new RdError('ERR_BODY_INVALID', `"${unknown}" is nothing that a factory reset knows`, {
      advice: 'Send {"keepSystemImages": true} to keep downloads, or nothing.',
    });
  }
  if (typeof keepSystemImages === 'boolean') return keepSystemImages;
  throw new RdError('ERR_BODY_INVALID', `"keepSystemImages" is ${JSON.stringify(keepSystemImages)}, not true or false`);
}

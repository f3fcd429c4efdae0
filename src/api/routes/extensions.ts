import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RdError } from '../../errors.ts';
import type { Extensions } from '../../features/extensions/contract.ts';
import { authorOf } from '../author.ts';
import { type ReplyDoc, withDoc } from '../route-doc.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

/** Header with the reason of a refusal for display, percent-encoded; the body is that of the compatible interface. */
const REASON = 'Rdctl-Reason';
/**
 * Header with the features that an extension requests and does not get: clauses separated by `
 * `, percent-encoded.
 */
const LEFT_OUT = 'Rdctl-Left-Out';

const NOT_READY: ReplyDoc = { description: 'no engine has run since the service started', body: 'text' };
const QUERY = { id: { description: 'image with or without a tag, URL-encoded', required: true } };

/** The port of the extension routes. */
export interface ExtensionsPort {
  extensions: Pick<Extensions, 'ready' | 'list' | 'install' | 'uninstall'>;
}

/** Registers `/v1/extensions`: the installed extensions. Installing and uninstalling are serialized. */
export function extensionRoutes(app: FastifyInstance, { extensions }: ExtensionsPort): void {
  app.get(
    '/v1/extensions',
    withDoc({
      scope: 'read',
      summary: 'List the installed extensions by image name',
      replies: {
        200: {
          description: 'an object; empty when none is installed',
          body: 'json',
          schema: {
            type: 'object',
            additionalProperties: {
              type: 'object',
              required: ['version', 'metadata', 'labels'],
              properties: {
                version: { type: 'string' },
                metadata: { type: 'object' },
                labels: { type: 'object', additionalProperties: { type: 'string' } },
              },
            },
          },
          example: {},
        },
        503: NOT_READY,
      },
    }),
    async (_request, reply) => {
      if (!extensions.ready) throw new RdError('ERR_NOT_READY', TEXTS.extensionsNotReady);
      return reply.type(JSON_TYPE).send(JSON.stringify(await extensions.list()));
    },
  );

  app.post(
    '/v1/extensions/install',
    withDoc({
      scope: 'write',
      summary: 'Install an extension from an image, or another version of it',
      description: `An interim 102 is sent first. The header ${REASON} says why a request was refused, ${LEFT_OUT} which features of the extension are not supported.`,
      query: QUERY,
      replies: {
        201: { description: 'it is installed', body: 'text', example: 'Created' },
        204: { description: 'this version is already installed', body: 'none' },
        400: { description: 'no id, several ids, or the map of installed extensions is locked', body: 'text' },
        403: { description: 'not on the allow list, or not an image name', body: 'text' },
        422: { description: 'the image is missing or is not an extension', body: 'text' },
        500: { description: 'the tag cannot be determined, or another error', body: 'text' },
        503: { ...NOT_READY, description: `${NOT_READY.description}, or none is running` },
      },
    }),
    async (request, reply) => {
      const id = idOf(request);
      interim(reply);
      const { outcome, leftOut } = await withReason(reply, extensions.install(id, { by: authorOf(request) }));
      if (leftOut.length > 0) reply.header(LEFT_OUT, headerText(leftOut.join(' | ')));
      return outcome === 'unchanged' ? reply.code(204).send() : reply.code(201).type(TEXT_TYPE).send('Created');
    },
  );

  app.post(
    '/v1/extensions/uninstall',
    withDoc({
      scope: 'write',
      summary: 'Uninstall an extension',
      query: QUERY,
      replies: {
        201: { description: 'it is gone', body: 'text', example: 'Deleted example/tool' },
        204: { description: 'not installed, or installed in another version', body: 'none' },
        400: { description: 'no id, several ids, or the map of installed extensions is locked', body: 'text' },
        500: { description: 'its files cannot be removed', body: 'text' },
        503: NOT_READY,
      },
    }),
    async (request, reply) => {
      const id = idOf(request);
      interim(reply);
      const outcome = await withReason(reply, extensions.uninstall(id, { by: authorOf(request) }));
      return outcome === 'unchanged' ? reply.code(204).send() : reply.code(201).type(TEXT_TYPE).send(`Deleted ${id}`);
    },
  );
}

function idOf({ query }: FastifyRequest): string {
  const id: unknown = typeof query === 'object' && query !== null && 'id' in query ? query.id : undefined;
  if (id === undefined || id === '') {
    throw new RdError('ERR_BODY_INVALID', 'Extension ID is required in the id= parameter.');
  }
  if (typeof id === 'string') return id;
  throw new RdError('ERR_BODY_INVALID', `Invalid extension id ${JSON.stringify(id)}: not a string.`);
}

/** Sends an interim response, for clients that limit the time until the first byte. */
function interim({ raw }: FastifyReply): void {
  if (raw.socket) raw.writeProcessing();
}

async function withReason<T>(reply: FastifyReply, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    const cause = error instanceof RdError ? error.cause : undefined;
    if (cause instanceof Error) reply.header(REASON, headerText(reasonText(cause)));
    throw error;
  });
}

/** Returns the root problem as text, with the advice of its cause, if any. */
function reasonText(cause: Error): string {
  if (!(cause instanceof RdError) || cause.advice === undefined) return cause.message;
  return `${cause.message.replace(/\.$/, '')}. ${cause.advice}`;
}

/** Characters of a text that a header carries, before encoding. */
const MAX_TEXT = 1000;

/** Encodes text for a header; lone surrogates, which have no encoding, become the replacement character. */
function headerText(text: string): string {
  const start = Array.from(text.slice(0, 2 * MAX_TEXT))
    .slice(0, MAX_TEXT)
    .join('');
  return encodeURIComponent(Buffer.from(start).toString());
}

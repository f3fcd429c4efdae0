import { messageOf, RdError } from '../errors.ts';
import { defined, isObject, type JsonObject } from '../json.ts';
import type { HttpResponse } from './connection.ts';
import type { CallOptions, Server } from './contract.ts';
import { answerOf, replyNote } from './replies.ts';

/** Milliseconds that an installation may take by default: it pulls an image. */
const INSTALL_LIMIT = 30 * 60_000;

/** A service's reply of any status. */
export interface ExtensionReply {
  status: number;
  statusText: string;
  text: string;
  /** The reason of a refusal, for display; only sent by our services. */
  reason?: string;
  /** Capabilities that the extension requests and does not get. */
  leftOut: string[];
  /** Advice beside the text of a refusal. */
  note?: string;
}

/** Installs an extension on our service or Rancher Desktop. Throws transport failures, and for replies that are not from a service. */
export async function installExtension(server: Server, id: string, options: CallOptions = {}): Promise<ExtensionReply> {
  return post(server, `/v1/extensions/install?id=${encodeURIComponent(id)}`, options);
}

export async function uninstallExtension(
  server: Server,
  id: string,
  options: CallOptions = {},
): Promise<ExtensionReply> {
  return post(server, `/v1/extensions/uninstall?id=${encodeURIComponent(id)}`, options);
}

/** Returns the installed versions by image name. `document` is the raw body; undefined for a refusal. */
export async function listExtensions(
  server: Server,
  options: CallOptions = {},
): Promise<{ reply: ExtensionReply; document?: JsonObject }> {
  const response = await answerOf(server, { method: 'GET', path: '/v1/extensions', ...options });
  const reply = replyOf(server, response);
  if (reply.status < 200 || reply.status > 299) return { reply };
  try {
    const document: unknown = JSON.parse(reply.text);
    if (isObject(document)) return { reply, document };
    throw new Error('it is not an object');
  } catch (cause) {
    throw new RdError('ERR_CONNECTION', `failed to unmarshal extension list API response: ${messageOf(cause)}`, {
      cause,
    });
  }
}

async function post(server: Server, path: string, options: CallOptions): Promise<ExtensionReply> {
  const response = await answerOf(server, { method: 'POST', path, timeoutMs: INSTALL_LIMIT, ...options });
  return replyOf(server, response);
}

function replyOf(server: Server, response: HttpResponse): ExtensionReply {
  const { 'rdctl-reason': reason, 'rdctl-left-out': leftOut } = response.headers;
  const note = replyNote(server, response);
  return {
    status: response.status,
    statusText: response.statusText,
    text: response.body.toString('utf8'),
    ...(typeof reason === 'string' ? { reason: decodeName(reason) } : {}),
    ...defined({ note }),
    leftOut: typeof leftOut === 'string' ? decodeName(leftOut).split(' | ') : [],
  };
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

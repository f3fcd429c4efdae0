import { createClient } from '../../src/client/client.ts';
import { answerOf, replyNote } from '../../src/client/replies.ts';
import { RdError } from '../../src/errors.ts';
import { defined } from '../../src/json.ts';
import { readInput } from '../arguments/files.ts';
import { quote, usage } from '../arguments/values.ts';
import { defineCommand } from '../command.ts';

/** Milliseconds that a call may take: a reset, a snapshot or an image can take long, and scripts wait for it. */
const LIMIT_MS = 30 * 60_000;

export const api = defineCommand({
  name: 'api',
  summary: 'Call an endpoint of the API',
  usage: 'ENDPOINT',
  description: `\`rdctl api /\` lists the endpoints. Endpoints without a version are under /v1:
\`rdctl api settings\`. The method is PUT with a body, and GET otherwise. The response is printed to stdout; if
it is an error, a JSON object with the status is printed to stdout and the response to stderr.

  rdctl api settings`,
  flags: {
    method: {
      type: 'string',
      short: 'X',
      summary: 'HTTP method (default GET, or PUT with a body)',
      placeholder: 'METHOD',
    },
    input: { type: 'string', summary: 'File with the request body, or `-` for standard input', placeholder: 'FILE' },
    body: { type: 'string', short: 'b', summary: 'Request body', placeholder: 'JSON' },
  },
  classic: true,
  async run({ flags, args, io, connect }) {
    const client = createClient(await connect());
    const [endpoint, ...more] = args;
    if (endpoint === undefined || endpoint === '') throw usage('api command: no endpoint specified');
    if (more.length > 0) {
      throw usage(`api command: too many endpoints specified ([${args.join(' ')}]); exactly one must be specified`);
    }
    if (flags.body && flags.input) throw usage('api command: --body and --input options cannot both be specified');
    const method = flags.method || (flags.body || flags.input ? 'PUT' : 'GET');
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method)) {
      throw new RdError('ERR_BODY_INVALID', `net/http: invalid method ${quote(method)}`);
    }
    const body = flags.input ? await readInput(flags.input, io) : flags.body || undefined;
    const path = apiPath(endpoint);
    const limit = method === 'GET' || method === 'HEAD' ? {} : { timeoutMs: LIMIT_MS };
    const request = { method, path, signal: io.signal, ...limit, ...defined({ body }) };
    const response = await answerOf(client, request);
    const text = response.body.toString('utf8');
    if (response.status >= 200 && response.status < 300) {
      if (text !== '') io.out(`${text}\n`);
      return 0;
    }
    io.out(`${JSON.stringify({ message: `${response.status} ${response.statusText}` })}\n`);
    for (const said of [text, replyNote(client, response) ?? '']) if (said !== '') io.err(`${said}\n`);
    return 1;
  },
});

/**
 * Returns the path of an endpoint: `/` and version prefixes pass unchanged; anything else gets `/v1/` prepended. Characters that a URL cannot hold
 * are escaped.
 */
export function apiPath(endpoint: string): string {
  const path = endpoint === '/' || /^\/v\d+(?:\/|$)/.test(endpoint) ? endpoint : `/v1/${endpoint.replace(/^\//, '')}`;
  return path.replace(/[^!#$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~]/gu, encodeURIComponent);
}

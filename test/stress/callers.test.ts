import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { OpenApiDocument } from '../../src/api/openapi.ts';
import { places } from '../../src/state/places.ts';
import { createToken, revokeToken, TOKEN_SCOPES } from '../../src/state/tokens.ts';
import { rounds } from '../helpers/rounds.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import type { FuzzRequest } from '../wire/fuzz/request-arbitrary.ts';
import { bytesOf, exchange, parse, send } from '../wire/raw.ts';
import type { Tokens } from './callers/callers.ts';
import { type Asked, isEndless, mayHave, misdeed } from './callers/judge.ts';
import { askedArbitrary } from './callers/requests.ts';

/** Requests that are under way at once. */
const AT_ONCE = 12;
const BATCHES = rounds(2_000, 100_000);
/** Milliseconds. */
const LIMIT = rounds(45_000, 1_800_000);
const PLANTED = 'a-secret-in-the-settings';

/** Tokens of every scope, one that is over, and one that was revoked. */
async function tokensIn(directory: string): Promise<Tokens> {
  const createdAt = '2026-01-01T00:00:00.000Z';
  const made: Record<string, string> = {};
  for (const scope of TOKEN_SCOPES) made[scope] = await createToken(directory, { name: scope, scope, createdAt });
  made.expired = await createToken(directory, { name: 'over', scope: 'write', createdAt, expiresAt: createdAt });
  made.revoked = await createToken(directory, { name: 'gone', scope: 'write', createdAt });
  await revokeToken(directory, 'gone');
  return made as Tokens;
}

/** What would end the service may be asked for only by those who may not have it. */
function endsService({ target }: Asked): boolean {
  return /\/v[01]\/(?:shutdown|factory_reset)\/?(?:\?|$)/i.test(target);
}

test('no caller gets more than its credentials allow, nor a secret, whatever is asked and however', async () => {
  const home = temporaryDirectory();
  const here = places({ RDCTL_HOME: home }, 'linux', '');
  mkdirSync(dirname(here.settingsFile), { recursive: true, mode: 0o700 });
  const proxy = { enabled: false, address: '', password: PLANTED, port: 3128, username: '', noproxy: [] };
  writeFileSync(here.settingsFile, JSON.stringify({ version: 19, experimental: { virtualMachine: { proxy } } }), {
    mode: 0o600,
  });
  const { service } = await startService({ home, power: 'stopped' });
  const to = service.connection;
  const tokens = await tokensIn(here.tokens);
  const document: OpenApiDocument = JSON.parse(
    (await exchange(to, { method: 'GET', target: '/v2/openapi.json' })).body,
  );
  const secrets = [to.password, Buffer.from(`${to.user}:${to.password}`).toString('base64'), ...Object.values(tokens)];
  const openFiles = () => readdirSync('/proc/self/fd').length;
  const served: Record<string, number> = {};
  let refused = 0;
  let most: number | undefined;

  async function hold(request: Asked & FuzzRequest): Promise<void> {
    const may = mayHave(document, request);
    if (may && (isEndless(request) || endsService(request))) return;
    const bytes = await send(to.port, bytesOf(to, request), request.malformed);
    if (/^(?:HTTP\/1\.1 100 [^\r]*\r\n\r\n)?$/.test(bytes.toString('latin1'))) return;
    const reply = parse(bytes);
    const hidden = request.caller.standing === 'full' ? secrets : [...secrets, PLANTED];
    const wrong = misdeed(document, request, reply, hidden);
    if (wrong !== undefined) throw new Error(`${wrong}: ${reply.status} ${reply.body.slice(0, 300)}`);
    if (may && reply.status < 300) served[request.caller.standing] = (served[request.caller.standing] ?? 0) + 1;
    else if (!may) refused += 1;
  }

  const outcome = await fc.check(
    fc.asyncProperty(
      fc.array(askedArbitrary(to, tokens, document), { minLength: AT_ONCE, maxLength: AT_ONCE, size: 'max' }),
      async (requests) => {
        const outcomes = await Promise.allSettled(requests.map(hold));
        for (const [at, outcome] of outcomes.entries()) {
          if (outcome.status === 'rejected')
            throw new Error(`${JSON.stringify(requests[at]).slice(0, 2_000)}: ${outcome.reason}`);
        }
        expect((await exchange(to, { method: 'GET', target: '/v2/status' })).status).toBe(200);
        if (process.platform === 'linux') {
          most ??= openFiles() + 3 * AT_ONCE;
          expect(openFiles()).toBeLessThan(most);
        }
      },
    ),
    { numRuns: BATCHES, interruptAfterTimeLimit: LIMIT, endOnFailure: true },
  );
  // fast-check itself would print the bodies of a whole batch.
  if (outcome.failed)
    throw new Error(`batch ${outcome.numRuns} with the seed ${outcome.seed}`, { cause: outcome.errorInstance });
  process.stderr.write(`refused ${refused}, served ${JSON.stringify(served)}\n`);
  // A service that refuses everything would pass as well.
  for (const standing of ['none', ...TOKEN_SCOPES, 'full']) expect(served[standing] ?? 0).toBeGreaterThan(10);
  expect(refused).toBeGreaterThan(1_000);

  await service.stop('its log is read');
  const log = readFileSync(join(here.logs, 'service.log'), 'utf8');
  expect(log).not.toContain('request failed unexpectedly');
  for (const secret of [...secrets, PLANTED]) expect(log).not.toContain(secret);
});

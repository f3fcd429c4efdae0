import { homeService } from '../../src/client/home-service.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import { defined } from '../../src/json.ts';
import { adoptPlaces } from '../../src/state/drop-in.ts';
import type { Places } from '../../src/state/places.ts';
import {
  checkTokenName,
  createToken,
  listTokens,
  revokeToken,
  TOKEN_SCOPES,
  type TokenRecord,
} from '../../src/state/tokens.ts';
import { noArguments, oneArgument } from '../arguments/arguments.ts';
import { LiteralError, parseDuration, quote, usage } from '../arguments/values.ts';
import { defineCommand, type Io } from '../command.ts';
import { defineGroup } from '../group.ts';
import { timeText } from '../views/history-text.ts';
import { jsonText, tableLines } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';

const USUAL_LIFETIME = '30d';
const DAY = 86_400_000;

const tokenCreate = defineCommand({
  name: 'token create',
  summary: 'Create a token, and print it once',
  usage: '--scope SCOPE --name NAME',
  description: `Prints the token to stdout. It is stored hashed, so it cannot be shown again. Scopes, each including the ones before:
  read   everything that shows state and settings, without secrets
  plan   plans and checks, which change nothing
  write  everything that changes the desktop, except a factory reset

  rdctl token create --scope read --name monitoring --expires 90d`,
  flags: {
    scope: { type: 'string', summary: 'What the token allows', values: TOKEN_SCOPES },
    name: { type: 'string', summary: 'Name, recorded in the history with every change', placeholder: 'NAME' },
    expires: {
      type: 'string',
      summary: `When it stops working: a duration such as 12h or 30d, or never (default ${USUAL_LIFETIME})`,
      placeholder: 'TIME',
    },
    output: OUTPUT_FLAG,
  },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'token create');
    const scope = TOKEN_SCOPES.find((each) => each === flags.scope);
    if (!scope) throw usage('token create requires --scope', `Choose one of ${TOKEN_SCOPES.join(', ')}.`);
    if (flags.name === undefined) throw usage('token create requires --name', 'Name the program that uses it: ci-bot');
    const { name } = flags;
    checkTokenName(name);
    const now = Date.now();
    const lifetime = lifetimeIn(flags.expires ?? USUAL_LIFETIME);
    const where = homeOf(io);
    for (const notice of await adoptPlaces(where, { adopt: false, now })) io.err(`notice: ${notice}\n`);
    const record: TokenRecord = {
      name,
      scope,
      createdAt: new Date(now).toISOString(),
      ...(lifetime === undefined ? {} : { expiresAt: new Date(now + lifetime).toISOString() }),
    };
    const token = await createToken(where.tokens, record);
    const url = await urlOf(where);
    if (flags.output === 'json') {
      io.out(jsonText({ kind: 'Token', formatVersion: 1, ...record, token, ...defined({ url }) }));
      return 0;
    }
    io.out(`${token}\n`);
    io.err(`The token is not shown again. Scope: ${scope}; expires: ${expiryText(record)}.\n`);
    if (url !== undefined) io.err(`The service listens at ${url}.\n`);
    return 0;
  },
});

/** Parses a lifetime in milliseconds; undefined for `never`. Throws `ERR_USAGE`. */
function lifetimeIn(text: string): number | undefined {
  if (text === 'never') return undefined;
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  try {
    const ms = days === undefined ? parseDuration(text) : Number(days) * DAY;
    if (ms > 0) return ms;
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
  }
  throw usage(`--expires ${quote(text)} is not a time to come`, 'Use a duration such as 12h or 30d, or never.');
}

/** Returns the address of the running service; undefined without one. */
async function urlOf(where: Places): Promise<string | undefined> {
  const home = await homeService(where);
  return home.kind === 'running' && home.holder.port !== undefined ? `http://127.0.0.1:${home.holder.port}` : undefined;
}

const tokenList = defineCommand({
  name: 'token list',
  summary: 'List the tokens',
  usage: '',
  description: `Tokens themselves are not stored and cannot be shown.

  rdctl token list`,
  flags: { output: OUTPUT_FLAG },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'token list');
    const found = await listTokens(homeOf(io).tokens);
    const now = Date.now();
    if (flags.output === 'json') {
      const tokens = found.map(({ name, record }) => ({ ...(record ?? { name }), usable: isUsable(record, now) }));
      io.out(jsonText({ kind: 'TokenList', formatVersion: 1, tokens }));
    } else if (found.length === 0) {
      io.err('There are no tokens. Create one with: rdctl token create --scope read --name NAME\n');
    } else {
      printTable(found, now, io);
    }
    return 0;
  },
});

function printTable(found: Awaited<ReturnType<typeof listTokens>>, now: number, io: Io): void {
  const rows = found.map(({ name, record }) =>
    record
      ? [name, record.scope, timeText(record.createdAt), isUsable(record, now) ? expiryText(record) : 'expired']
      : [name, '-', '-', 'damaged file; revoke it'],
  );
  io.out(`${tableLines([['NAME', 'SCOPE', 'CREATED', 'EXPIRES'], ...rows]).join('\n')}\n`);
}

function isUsable(record: TokenRecord | undefined, now: number): boolean {
  return record !== undefined && (record.expiresAt === undefined || now < Date.parse(record.expiresAt));
}

function expiryText({ expiresAt }: TokenRecord): string {
  return expiresAt === undefined ? 'never' : timeText(expiresAt);
}

const tokenRevoke = defineCommand({
  name: 'token revoke',
  summary: 'Revoke a token',
  usage: 'NAME',
  description: `It is refused from the next request on, and open event streams end within a second, whether or not a service is
running now. Exit codes: 0 success; 1 there is no such token.

  rdctl token revoke ci`,
  flags: {},
  classic: false,
  async run({ args, io }) {
    const name = oneArgument(args);
    if (!(await revokeToken(homeOf(io).tokens, name))) {
      throw new RdError('ERR_NOT_FOUND', `There is no token with the name ${quote(name)}.`, {
        advice: 'List them with: rdctl token list',
      });
    }
    io.err(`Revoked the token ${name}.\n`);
    return 0;
  },
});

export const token = defineGroup({
  name: 'token',
  summary: 'Create and revoke tokens for other programs',
  description: `A token gives a program access to the API without the password of the connection file: with a scope, a name and an end.
The program sends it as \`Authorization: Bearer TOKEN\`. Tokens work with the next request, also if the service is running already.`,
  flags: {},
  classic: false,
  subcommands: [tokenCreate, tokenList, tokenRevoke],
});

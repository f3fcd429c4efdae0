import fc from 'fast-check';
import type { Connection } from '../../../src/client/connection.ts';
import type { TokenScope } from '../../../src/state/tokens.ts';

/** What a caller can show: nothing that is valid, a token of a scope, or everything. */
export type Standing = 'none' | TokenScope | 'full';

/** Valid tokens by scope, and others that were valid. */
export type Tokens = Readonly<Record<TokenScope | 'expired' | 'revoked', string>>;

/** Headers of a request with what they stand for, which follows from how they were made and is not read off them. */
export interface Caller {
  standing: Standing;
  headers: Record<string, string>;
}

const basic = (user: string, password: string) => Buffer.from(`${user}:${password}`).toString('base64');
const cut = (text: string) => text.slice(0, -1);

/** Callers of every standing; each wrong value is close to a right one. */
export function callerArbitrary(to: Connection, tokens: Tokens): fc.Arbitrary<Caller> {
  const { user, password } = to;
  const token = (scope: TokenScope) =>
    fc
      .constantFrom(
        `Bearer ${tokens[scope]}`,
        `bearer   ${tokens[scope]}`,
        `  Bearer ${tokens[scope]}  `,
        `Basic ${basic('token', tokens[scope])}`,
      )
      .map((Authorization): Caller => ({ standing: scope, headers: { Authorization } }));
  const full = fc
    .constantFrom(`Basic ${basic(user, password)}`, `bAsIc   ${basic(user, password)}`)
    .map((Authorization): Caller => ({ standing: 'full', headers: { Authorization } }));
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...wrong(to, tokens)).map(without) },
    { weight: 2, arbitrary: fc.string({ maxLength: 60, unit: fc.constantFrom(...VISIBLE) }).map(without) },
    { weight: 3, arbitrary: token('read') },
    { weight: 3, arbitrary: token('plan') },
    { weight: 2, arbitrary: token('write') },
    { weight: 1, arbitrary: full },
  );
}

const VISIBLE = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at));

function without(authorization: string): Caller {
  return { standing: 'none', headers: authorization === '' ? {} : { Authorization: authorization } };
}

/** No valid credentials. */
function wrong({ user, password }: Connection, { read, write, expired, revoked }: Tokens): string[] {
  return [
    ...['', 'Basic', 'Basic =', 'Bearer', 'Bearer x', 'Digest username="user"'],
    ...[`Basic ${basic(user, '')}`, `Basic ${basic(user, cut(password))}`, `Basic ${basic(user, `${password}\0`)}`],
    ...[`Basic ${basic('', password)}`, `Basic ${basic(`${user}x`, password)}`, `Basic ${basic('token', password)}`],
    ...[
      `Basic ${basic(user, write)}`,
      `Basic ${user}:${password}`,
      `Bearer ${password}`,
      `Bearer ${basic(user, password)}`,
    ],
    // The right words in another order, or after others.
    ...[`x Basic ${basic(user, password)}`, `Bearer Basic ${basic(user, password)}`, `Basic, ${basic(user, password)}`],
    ...[`Bearer ${cut(write)}`, `Bearer ${write}x`, `Bearer ${write} x`, `Bearer ${write.toUpperCase()}`],
    ...[`Bearer ${read.replace('_read_', '_write_')}`, `Bearer ${write.replace('rdctl_', '')}`, write],
    ...[
      `Bearer ${expired}`,
      `Bearer ${revoked}`,
      `Basic ${basic('token', revoked)}`,
      `Basic ${basic('token', expired)}`,
    ],
    // The name of a token is that of its file.
    ...[`Bearer ${write.replace('_write_', '_../write_')}`, `Bearer ${write.replace('_write_', '_write.json_')}`],
  ];
}

/** What browsers say of the page that sends a request. */
export interface Page {
  /** It is a page of somebody else, which must get nothing, whatever credentials come with it. */
  foreign: boolean;
  headers: Record<string, string>;
}

/** Requests of programs, of pages of the service, and of foreign pages. */
export function pageArbitrary({ port }: Connection): fc.Arbitrary<Page> {
  const here = `127.0.0.1:${port}`;
  const own: Record<string, string>[] = [
    ...[
      {},
      { Origin: `http://${here}` },
      { Host: `localhost:${port}` },
      { Host: `[::1]:${port}` },
      { Host: '127.0.0.1' },
    ],
    ...[{ 'Sec-Fetch-Site': 'same-origin', Origin: `http://${here}` }, { 'Sec-Fetch-Site': 'none' }],
    ...[{ Host: `LOCALHOST:${port}`, Origin: `http://localhost:${port}` }, { Host: 'localhost.' }],
  ];
  const foreign: Record<string, string>[] = [
    ...[`evil.example`, `evil.example:${port}`, `127.0.0.1.evil.example`, `localhost.evil.example:${port}`].map(hosted),
    ...[`evil.example@127.0.0.1:${port}`, `127.0.0.1:${port}@evil.example`, '127.0.0.1, evil.example', 'a b'].map(
      hosted,
    ),
    ...['localhost..', 'xlocalhost', '[::1', '127.0.0.1:x', '0x7f.1.evil', 'local\u00adhost'].map(hosted),
    ...['http://evil.example', 'null', 'file://', `https://${here}`, `http://127.0.0.1:${port + 1}`].map(from),
    ...[`http://${here}.evil.example`, `http://evil.example#http://${here}`, `http://${here}/`, '', ' '].map(from),
    ...['cross-site', 'same-site', 'Cross-Site', 'CROSS-SITE'].map((site) => ({ 'Sec-Fetch-Site': site })),
    ...['cross-site', 'same-site'].map((site) => ({ 'Sec-Fetch-Site': site, Origin: `http://${here}` })),
    { Host: `localhost:${port}`, Origin: `http://${here}` },
  ];
  return fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...own).map((headers) => ({ foreign: false, headers })) },
    { weight: 2, arbitrary: fc.constantFrom(...foreign).map((headers) => ({ foreign: true, headers })) },
  );
}

function hosted(Host: string): Record<string, string> {
  return { Host };
}

function from(Origin: string): Record<string, string> {
  return { Origin };
}

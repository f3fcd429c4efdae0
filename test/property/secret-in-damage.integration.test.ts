import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plistExporter } from '../../profiles/formats/plist.ts';
import { regExporter } from '../../profiles/formats/reg.ts';
import { deploymentTree } from '../../profiles/formats/tree.ts';
import { readPolicies } from '../../profiles/policies/read.ts';
import { rdctl } from '../helpers/cli.ts';
import { standIn } from '../helpers/policy-programs.ts';
import { runs } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** The password; when damage splits it, neither half may appear. */
const SECRET = 'HUSHHUSHMARKMARK';
const SEEN = /HUSH|MARK/;
const PROXY = { address: 'http://proxy', password: SECRET, port: 3128, username: 'u' };
const SETTINGS = { version: 19, experimental: { virtualMachine: { proxy: PROXY } }, kubernetes: { enabled: false } };

const yaml = (inner: string) =>
  `version: 19\nexperimental:\n  virtualMachine:\n    proxy:\n      address: http://proxy\n      password: ${inner}\n      username: u\n`;

const texts = async (): Promise<[name: string, text: string][]> => {
  const tree = await deploymentTree(SETTINGS);
  return [
    ['locked.plist', plistExporter.text(tree, { part: 'locked', hive: 'hklm' })],
    ['locked.reg', regExporter.text(tree, { part: 'locked', hive: 'hklm' })],
    ['locked.json', JSON.stringify(SETTINGS, null, 2)],
    ['plain.yaml', yaml(SECRET)],
    ['quoted.yaml', yaml(`"${SECRET}"`)],
    ['block.yaml', yaml(`|\n        ${SECRET}`)],
  ];
};

/** One character more, one less, or the end missing; mostly in the password. */
function damaged(text: string, { where, near, what }: { where: number; near: boolean; what: string }): string {
  const secret = text.indexOf(SECRET);
  const from = near ? Math.max(0, secret - 4) : 0;
  const to = near ? secret + SECRET.length + 4 : text.length;
  const at = from + (where % (to - from));
  if (what === 'cut') return text.slice(0, at);
  return what === 'drop' ? text.slice(0, at) + text.slice(at + 1) : text.slice(0, at) + what + text.slice(at);
}

const damage = fc.record({
  where: fc.nat(),
  near: fc.boolean(),
  what: fc.constantFrom('drop', 'cut', ...'"\'<>&{}[]:#!*@%|\\\t\n\u0000'),
});

/** Commands that print the document itself, with the password when nothing is wrong. */
const WRITERS: readonly string[][] = [
  ['create-profile', '--output', 'json', '--input'],
  ['profile', 'upgrade', '--dry-run'],
];
const READERS: readonly string[][] = [
  ['import-profile', '--verbose'],
  ['import-profile', '-o', 'json'],
  ['profile', 'check', '--release', '1.20'],
  ['profile', 'check', '--release', '1.20', '-o', 'json'],
  ['diff', 'whole.json'],
  ['diff', 'whole.json', '-o', 'json'],
];

test('an error anywhere in a file never shows its password', async () => {
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'whole.json'), JSON.stringify({ version: 19 }));
  const files = await texts();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...files), damage, async ([name, text], how) => {
      writeFileSync(join(cwd, name), damaged(text, how));
      const said: string[] = [];
      for (const argv of WRITERS) said.push((await rdctl([...argv, name], { cwd, env: {} })).err);
      for (const argv of READERS) {
        const { out, err } = await rdctl([...argv, name], { cwd, env: {} });
        said.push(out, err);
      }
      expect(said.join('\n')).not.toMatch(SEEN);
    }),
    { numRuns: runs(250) },
  );
}, 120_000);

test.each(['plist', 'json'] as const)(
  'nor does the connection file reader: %s',
  async (format) => {
    const directory = temporaryDirectory();
    const [, text] = (await texts()).find(([name]) => name === `locked.${format}`) ?? ['', ''];
    const place = {
      format,
      locked: join(directory, `locked.${format}`),
      defaults: join(directory, `defaults.${format}`),
    };
    const host = { platform: format === 'plist' ? 'darwin' : 'linux', arch: 'x64' } as const;
    await fc.assert(
      fc.asyncProperty(damage, async (how) => {
        writeFileSync(place.locked, damaged(text, how));
        const lines: string[] = [];
        try {
          lines.push(...(await readPolicies({ places: [place], programs: standIn({}).programs }, host)).warnings);
        } catch (error) {
          for (let each = error; each instanceof Error; each = each.cause)
            lines.push(each.message, ...('details' in each ? [String(each.details)] : []));
        }
        expect(lines.join('\n')).not.toMatch(SEEN);
      }),
      { numRuns: runs(300) },
    );
  },
  60_000,
);

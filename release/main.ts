import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parseAllowedSigners } from '../src/features/upgrade/signers.ts';
import { verifySignature } from '../src/features/upgrade/ssh-signature.ts';
import { withoutCodeSignature } from './code-signature.ts';
import { compile } from './compile.ts';
import { debianPackage } from './debian/package.ts';
import { describe } from './inside.ts';
import { standaloneLicenses } from './licenses.ts';
import { manifests } from './manifests.ts';
import { npmPackage } from './npm-package.ts';
import { checkProgram } from './program-headers.ts';
import { publish } from './releases-directory.ts';
import { sbom } from './sbom.ts';
import { sign, signerLine } from './signature.ts';
import { sourceTime } from './source-time.ts';
import { fileName, TARGETS, targetsNamed } from './targets.ts';

const USAGE = `usage: npm run dist [-- --target NAME,...] [--out-dir DIR] [--deb] [--npm] [--base-url URL]
       [--upgrade-url URL] [--releases-dir DIR]

Builds one file for each system, with its bill of materials, all licenses and the sums, in out/. A key in the file that
RDCTL_SIGNING_KEY names signs the sums. With --deb also a Debian package of each file for Linux, which needs dpkg-deb; DEBFULLNAME and
DEBEMAIL name its maintainer. With --npm also the package for npm, and with --base-url, the address that the files will have,
manifests for Homebrew, scoop and winget. With a key, \`rdctl upgrade\` of the files trusts what it has signed, and looks at --upgrade-url.
With --releases-dir the release is also put where \`rdctl upgrade\` finds it: DIR/VERSION and DIR/latest. Targets: ${TARGETS.map(({ name }) => name).join(', ')}.
`;

async function main(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      target: { type: 'string' },
      'out-dir': { type: 'string' },
      deb: { type: 'boolean' },
      npm: { type: 'boolean' },
      'base-url': { type: 'string' },
      'upgrade-url': { type: 'string' },
      'releases-dir': { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const targets = values.target === undefined ? TARGETS : targetsNamed(values.target);
  const folder = resolve(values['out-dir'] ?? 'out');
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const key = process.env.RDCTL_SIGNING_KEY;
  const upgradeUrl = values['upgrade-url'];
  const releases = values['releases-dir'];
  if (!key && (upgradeUrl ?? releases) !== undefined) {
    throw new Error('--upgrade-url and --releases-dir need a key: RDCTL_SIGNING_KEY is not set');
  }
  const pinned = key
    ? { ...(upgradeUrl === undefined ? {} : { url: upgradeUrl }), signers: signerLine(key) }
    : undefined;
  // What an earlier run left there is not of this build.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const made: string[] = [];
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
    made.push(name);
  };
  const inside = new Set<string>();
  const programs: Record<string, { file: string; sha256: string }> = {};
  for (const target of targets) {
    const name = fileName(version, target);
    const file = join(folder, name);
    const folders = await compile(target, file, '.', pinned);
    let program: Buffer = readFileSync(file);
    if (target.name === 'darwin-x64') {
      program = withoutCodeSignature(program);
      writeFileSync(file, program);
    }
    checkProgram(program, target);
    made.push(name);
    programs[target.name] = { file: name, sha256: sha256(program) };
    for (const each of folders) inside.add(each);
    write(`${name}.cdx.json`, sbom({ name, version, target, sha256: sha256(program) }, describe(folders)));
    process.stderr.write(`${name}: ${Math.round(program.length / 1e6)} MB, ${folders.length} packages\n`);
  }
  const packages = describe([...inside].sort());
  const notices = standaloneLicenses(packages);
  write(`rdctl-${version}-licenses.txt`, notices);
  for (const target of values.deb ? targets.filter(({ format }) => format === 'elf') : []) {
    const program = join(folder, fileName(version, target));
    const input = {
      version,
      target,
      program,
      packages,
      notices,
      folder,
      epoch: sourceTime(),
      maintainer: maintainer(),
    };
    made.push(await debianPackage(input));
  }
  if (values.npm) made.push(npmPackage(folder, [...inside].sort()));
  const base = values['base-url'];
  if (base !== undefined) {
    for (const [name, text] of manifests({ version, base, sums: programs })) write(`manifests/${name}`, text);
  }
  const sums = made.sort().map((name) => `${sha256(readFileSync(join(folder, name)))}  ${name}\n`);
  const sumsFile = join(folder, 'SHA256SUMS');
  writeFileSync(sumsFile, sums.join(''));
  if (key && pinned) {
    const signature = sign(sumsFile, key);
    // As `rdctl upgrade` of these files will do it, so that a wrong KEY.pub is found here.
    verifySignature(
      readFileSync(sumsFile),
      readFileSync(signature, 'utf8'),
      parseAllowedSigners(pinned.signers, 'RDCTL_SIGNING_KEY'),
    );
    process.stderr.write(`${basename(signature)}: signed\n`);
  } else process.stderr.write('SHA256SUMS is not signed: RDCTL_SIGNING_KEY is not set\n');
  if (releases !== undefined) process.stderr.write(`${publish(folder, resolve(releases), version)}\n`);
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** As Debian's own tools name it. */
function maintainer(): string {
  const { DEBFULLNAME = 'rdctl maintainers', DEBEMAIL = 'maintainers@rdctl.example' } = process.env;
  return `${DEBFULLNAME} <${DEBEMAIL}>`;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`Error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

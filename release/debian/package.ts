import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { COMMANDS } from '../../cli/commands.ts';
import { bashScript, fishScript, zshScript } from '../../cli/completion/scripts.ts';
import { systemdService } from '../../src/features/service-units/unit-files.ts';
import type { InsidePackage } from '../inside.ts';
import type { Target } from '../targets.ts';
import { control, MAINTAINER_SCRIPTS } from './control.ts';
import { copyrightFile } from './copyright.ts';
import { manPages } from './man-pages.ts';

/** Debian's part of the version: counts packages of one release. */
const REVISION = 1;
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' } as const;
const DOCUMENTS = 'usr/share/doc/rdctl';
const COMPLETES = '__complete';

/** What lintian finds and what stays, with the reason. */
const OVERRIDES = `# The program carries its compiled code in a section of its own, which stripping would damage.
rdctl: unstripped-binary-or-object [usr/bin/rdctl]
# The runtime comes from its makers in one piece; they link it, and docs/internals/standalone.md says with what.
rdctl: embedded-library *[usr/bin/rdctl]
rdctl: hardening-no-pie [usr/bin/rdctl]
rdctl: hardening-no-relro [usr/bin/rdctl]
# Nobody uploads it to Debian.
rdctl: initial-upload-closes-no-bugs *
# A unit that an administrator enabled by systemctl is disabled by it; no tool of Debian knows of it.
rdctl: maintainer-script-calls-systemctl *
# The path is compared with that of running processes, and not run.
rdctl: command-with-path-in-maintainer-script /usr/bin/rdctl *
`;

export interface DebianInput {
  /** Of the release. */
  version: string;
  target: Target;
  /** The standalone file. */
  program: string;
  packages: readonly InsidePackage[];
  notices: string;
  folder: string;
  /** Seconds since 1970: the time of all files, so that two builds have one digest. */
  epoch: number;
  maintainer: string;
}

/** Builds the package of a file for Linux with dpkg-deb. Returns its name. */
export async function debianPackage(input: DebianInput): Promise<string> {
  const { version, target, folder, epoch, maintainer } = input;
  const debianVersion = `${version.replace('-', '~')}-${REVISION}`;
  const architecture = ARCHITECTURES[target.machine];
  const name = `rdctl_${debianVersion}_${architecture}.deb`;
  const root = mkdtempSync(join(folder, '.deb-'));
  try {
    await layOut(root, input, debianVersion);
    const facts = { version: debianVersion, architecture, maintainer, installedKib: kibibytesIn(root) };
    write(root, 'DEBIAN/control', control(facts));
    write(root, 'DEBIAN/md5sums', md5sums(root));
    for (const [script, text] of Object.entries(MAINTAINER_SCRIPTS)) write(root, `DEBIAN/${script}`, text, 0o755);
    openDirectories(root);
    // Level 6 takes five times as long for a tenth less; with more threads the bytes depend on their number.
    execFileSync(
      'dpkg-deb',
      ['--root-owner-group', '-Zxz', '-z1', '--threads-max=1', '--build', root, join(folder, name)],
      {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...process.env, SOURCE_DATE_EPOCH: String(epoch) },
      },
    );
    return name;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function layOut(root: string, input: DebianInput, debianVersion: string): Promise<void> {
  const { version, program, packages, notices, epoch, maintainer } = input;
  const time = new Date(epoch * 1000);
  const date = time.toISOString().slice(0, 10);
  mkdirSync(join(root, 'usr/bin'), { recursive: true });
  copyFileSync(program, join(root, 'usr/bin/rdctl'));
  chmodSync(join(root, 'usr/bin/rdctl'), 0o755);
  for (const [page, text] of await manPages(COMMANDS, { version, date })) {
    write(root, `usr/share/man/man1/${page}.gz`, gzipped(text));
  }
  write(root, 'usr/share/bash-completion/completions/rdctl', bashScript(COMPLETES));
  write(root, 'usr/share/zsh/vendor-completions/_rdctl', zshScript(COMPLETES));
  write(root, 'usr/share/fish/vendor_completions.d/rdctl.fish', fishScript(COMPLETES));
  const documentation = 'man:rdctl(1)';
  const unit = systemdService({ command: ['/usr/bin/rdctl', 'serve'], environment: {}, documentation });
  for (const manager of ['system', 'user']) write(root, `usr/lib/systemd/${manager}/rdctl.service`, unit);
  write(root, `${DOCUMENTS}/copyright`, copyrightFile(packages, date.slice(0, 4)));
  write(root, `${DOCUMENTS}/notices.txt.gz`, gzipped(notices));
  write(root, `${DOCUMENTS}/changelog.gz`, gzipped(readFileSync('CHANGELOG.md', 'utf8')));
  const entry = `rdctl (${debianVersion}) unstable; urgency=medium\n\n  * New release.\n\n -- ${maintainer}  ${rfc2822(time)}\n`;
  write(root, `${DOCUMENTS}/changelog.Debian.gz`, gzipped(entry));
  write(root, `${DOCUMENTS}/README.md`, readFileSync('README.md', 'utf8'));
  for (const page of readdirSync('docs').filter((file) => file.endsWith('.md'))) {
    write(root, `${DOCUMENTS}/docs/${page}`, readFileSync(join('docs', page), 'utf8'));
  }
  cpSync('examples', join(root, DOCUMENTS, 'examples'), { recursive: true });
  for (const each of filesIn(join(root, DOCUMENTS, 'examples')))
    chmodSync(join(root, DOCUMENTS, 'examples', each), 0o644);
  write(root, 'usr/share/lintian/overrides/rdctl', OVERRIDES);
}

function write(root: string, path: string, content: string | Buffer, mode = 0o644): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

/** As `gzip -9n`: without name and time. */
function gzipped(text: string): Buffer {
  return gzipSync(text, { level: 9 });
}

/** Whatever the umask of the build is. */
function openDirectories(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) openDirectories(join(folder, entry.name));
  }
}

function filesIn(root: string, below = ''): string[] {
  return readdirSync(join(root, below), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(below, entry.name);
      return entry.isDirectory() ? filesIn(root, path) : [path];
    });
}

function kibibytesIn(root: string): number {
  return filesIn(root).reduce((sum, path) => sum + Math.ceil(statSync(join(root, path)).size / 1024), 0);
}

function md5sums(root: string): string {
  const files = filesIn(root).filter((path) => !path.startsWith('DEBIAN/'));
  return execFileSync('md5sum', files, { cwd: root, encoding: 'utf8' });
}

function rfc2822(time: Date): string {
  return time.toUTCString().replace('GMT', '+0000');
}

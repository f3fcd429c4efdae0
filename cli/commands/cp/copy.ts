import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, realpath, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { RdError } from '../../../src/errors.ts';
import { ioError, systemCode } from '../../../src/os/io-error.ts';
import { shellLine } from '../../../src/os/program.ts';
import { type RunOptions, run, stream } from '../../../src/os/run.ts';
import { tarReader } from '../../../src/os/tar.ts';
import type { MachineAccess } from '../../../src/reconcile/status-document.ts';
import type { Io } from '../../command.ts';
import { downloadProgress } from '../../views/progress.ts';
import { count, plainText } from '../../views/text.ts';

/** Milliseconds that a copy may take, which no copy exceeds. */
const LIMIT_MS = 7 * 24 * 3_600_000;
/** Milliseconds after which a copy shows progress. */
const QUIET_MS = 1_000;
/** Exit status of the scripts for a refusal, and of ssh when there is no connection. */
const REFUSED = 3;
const NO_CONNECTION = 255;
const ALL_STATUSES = Array.from({ length: 256 }, (_, status) => status);
const PERMISSIONS = 0o777;

const REFUSE = `set -eu
refuse() { printf '%s\\n' "$*" >&2; exit ${REFUSED}; }
`;

/** Prints the kind of path `$1`: `directory`, or `file MODE SIZE TIME`. */
const LOOK_SCRIPT = `${REFUSE}if [ -d "$1" ]; then echo directory
elif [ -f "$1" ]; then exec stat -L -c 'file %a %s %Y' -- "$1"
elif [ -e "$1" ]; then refuse "$1 in the machine is neither a file nor a directory"
else refuse "there is no $1 in the machine"
fi
`;

/** Sets `to` to the destination, from path `$1` and the name `$2` within a directory, which may be empty. */
const TARGET = `${REFUSE}to=$1
if [ -d "$to" ]; then
  if [ -n "$2" ]; then to=\${to%/}/$2; fi
else
  case $to in */) refuse "there is no directory $to in the machine" ;; esac
fi
parent=$(dirname -- "$to")
[ -d "$parent" ] || refuse "there is no directory $parent in the machine"
`;

/** Writes stdin to a file: `$1` path, `$2` name within a directory, `$3` mode, `$4` size, `$5` time. Replaces a file only with a complete one. */
const PUT_FILE_SCRIPT = `${TARGET}[ ! -d "$to" ] || refuse "$to in the machine is a directory"
if [ -e "$to" ]; then
  to=$(readlink -f -- "$to")
  [ -f "$to" ] || refuse "$to in the machine is not a regular file"
fi
new=$to.rdctl-$$
trap 'rm -f -- "$new"' EXIT
umask 077
cat > "$new"
[ "$(wc -c < "$new")" -eq "$4" ] || refuse 'the copy broke off'
chmod "$3" -- "$new"
touch -d "@$5" -- "$new"
mv -f -- "$new" "$to"
trap - EXIT
`;

/** Unpacks stdin to a directory: `$1` path, `$2` name within a directory. An existing directory keeps its owner and mode. */
const PUT_DIRECTORY_SCRIPT = `${TARGET}keep=
if [ -d "$to" ]; then keep=--no-overwrite-dir
elif [ -e "$to" ]; then refuse "$to in the machine is not a directory"
else mkdir -- "$to"
fi
exec tar -xf - -C "$to" --no-same-owner $keep
`;

/**
 * Copies a path of this computer into the machine. @throws RdError `ERR_IO` if a path does not fit, `ERR_NOT_READY` without a connection,
 * `ERR_CANCELLED`.
 */
export async function upload(from: string, to: string, access: MachineAccess, io: Io): Promise<void> {
  const source = resolve(io.cwd, from);
  const facts = await stat(source).catch((cause: unknown) => {
    throw ioError('read', from, cause);
  });
  const target = [pathThere(to), nameOf(from, source)];
  if (facts.isDirectory()) {
    const archive = stream(['tar', '-cf', '-', '-C', source, '.'], { env: io.env, signal: io.signal, ...UNLIMITED });
    await inMachine(access, [PUT_DIRECTORY_SCRIPT, ...target], io, { inputStream: withProgress(archive, io) });
    return;
  }
  if (!facts.isFile()) throw new RdError('ERR_IO', `${from} is neither a file nor a directory`);
  const { mode, size, mtimeMs } = facts;
  // Exactly the announced size, even if the file grows meanwhile.
  const bytes = size === 0 ? Readable.from([]) : createReadStream(source, { end: size - 1 });
  const words = [(mode & PERMISSIONS).toString(8), String(size), String(Math.floor(mtimeMs / 1000))];
  await inMachine(access, [PUT_FILE_SCRIPT, ...target, ...words], io, { inputStream: withProgress(bytes, io, size) });
}

/**
 * Copies a path of the machine to this computer. @throws RdError `ERR_IO` if a path does not fit, `ERR_NOT_READY` without a connection,
 * `ERR_CANCELLED`.
 */
export async function download(from: string, to: string, access: MachineAccess, io: Io): Promise<void> {
  const source = pathThere(from);
  const { stdout } = await inMachine(access, [LOOK_SCRIPT, source], io);
  const [kind, mode = '', size = '', time = ''] = stdout.trim().split(' ');
  const target = await targetHere(to, nameOf(from, posix.normalize(source)), kind === 'directory', io);
  if (kind === 'directory') {
    await getDirectory(source, target, access, io);
    return;
  }
  const temporary = `${target.path}.rdctl-${process.pid}`;
  try {
    const bytes = withProgress(fromMachine(access, ['cat', '--', source], io), io, Number(size));
    const permissions = Number.parseInt(mode, 8) & PERMISSIONS;
    await pipeline(bytes, createWriteStream(temporary, { flags: 'wx', mode: permissions }));
    await utimes(temporary, Number(time), Number(time));
    await rename(temporary, target.path);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw ioError('write', target.path, cause);
  }
}

async function getDirectory(source: string, target: Target, access: MachineAccess, io: Io): Promise<void> {
  if (!target.exists) {
    await mkdir(target.path).catch((cause: unknown) => {
      throw ioError('create', target.path, cause);
    });
  }
  let leftOut = 0;
  const archive = fromMachine(access, ['tar', '-cf', '-', '-C', source, '.'], io);
  const ordinary = withoutDevices(withProgress(archive, io), () => {
    leftOut += 1;
  });
  // The machine must not decide about owners here, or about programs that run as their owner.
  const options = ['--no-same-owner', '--no-same-permissions', ...(target.exists ? ['--no-overwrite-dir'] : [])];
  await run(['tar', '-xf', '-', '-C', target.path, ...options], {
    env: io.env,
    signal: io.signal,
    inputStream: ordinary,
    ...UNLIMITED,
  });
  if (leftOut > 0) io.err(`notice: ${count(leftOut, 'special file')} (devices, pipes) left out\n`);
}

interface Target {
  path: string;
  exists: boolean;
}

/** Returns the destination of a copy of this name on this computer. */
async function targetHere(to: string, name: string, isDirectory: boolean, io: Io): Promise<Target> {
  const wanted = resolve(io.cwd, to);
  const facts = await kindOf(wanted);
  if (facts === 'nothing' && to.endsWith('/')) throw new RdError('ERR_IO', `there is no directory ${to}`);
  const inside = facts === 'directory' && name !== '';
  const path = inside ? join(wanted, name) : wanted;
  const there = inside ? await kindOf(path) : facts;
  if (there === 'nothing') {
    if ((await kindOf(dirname(path))) !== 'directory')
      throw new RdError('ERR_IO', `there is no directory ${dirname(path)}`);
    return { path, exists: false };
  }
  const fits = there === (isDirectory ? 'directory' : 'file');
  if (!fits) throw new RdError('ERR_IO', `${path} is not a ${isDirectory ? 'directory' : 'regular file'}`);
  return { path: await realpath(path), exists: true };
}

async function kindOf(path: string): Promise<'file' | 'directory' | 'other' | 'nothing'> {
  try {
    const facts = await stat(path);
    if (facts.isDirectory()) return 'directory';
    return facts.isFile() ? 'file' : 'other';
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return 'nothing';
    throw ioError('read', path, error);
  }
}

/** Returns a path in the machine that no program takes for an option. */
function pathThere(path: string): string {
  if (path === '') return '.';
  return path.startsWith('/') ? path : `./${path}`;
}

/** Returns the name of a copy within a directory; empty when the contents of the directory are copied. @param path without `.` within it. */
function nameOf(typed: string, path: string): string {
  const name = basename(path);
  return typed.endsWith('/.') || name === '.' || name === '..' || typed === '.' ? '' : name;
}

const UNLIMITED = { timeoutMs: LIMIT_MS };

function commandLine({ ssh, target, before }: MachineAccess, argv: readonly string[]): string[] {
  return [...ssh, '-T', target, shellLine([...before, ...argv])];
}

/** Runs a script in the machine. */
async function inMachine(
  access: MachineAccess,
  [script = '', ...words]: readonly string[],
  { env, signal }: Io,
  options: Pick<RunOptions, 'inputStream'> = {},
) {
  const argv = commandLine(access, ['sh', '-c', script, 'cp', ...words]);
  const result = await run(argv, { ...options, env, signal, ...UNLIMITED, accept: ALL_STATUSES });
  const { exitCode, stderr } = result;
  if (exitCode === 0) return result;
  throw failure(exitCode, stderr);
}

function failure(exitCode: number, stderr: string): RdError {
  const details = stderr
    .trim()
    .split('\n')
    .map((line) => plainText(line));
  const last = details.pop() ?? '';
  if (exitCode === NO_CONNECTION) {
    return new RdError('ERR_NOT_READY', `The virtual machine cannot be reached: ${last || 'ssh failed'}`, {
      details,
      advice: 'Check `rdctl status`.',
    });
  }
  return new RdError('ERR_IO', last || `the copy failed in the machine with exit status ${exitCode}`, { details });
}

/** Returns the output of a program in the machine. */
function fromMachine(access: MachineAccess, argv: readonly string[], { env, signal }: Io): AsyncIterable<Uint8Array> {
  // A client of a control master waits for the remote program, whatever its own options are.
  return stream(commandLine(access, argv), { env, signal, ...UNLIMITED, graceMs: 0 });
}

/** Passes the bytes through, and shows progress once they take a while. */
function withProgress(bytes: AsyncIterable<Uint8Array>, io: Io, total?: number): Readable {
  async function* reportProgress(): AsyncGenerator<Uint8Array, void> {
    const progress = downloadProgress(io);
    const began = performance.now();
    let done = 0;
    try {
      for await (const chunk of bytes) {
        done += chunk.length;
        if (performance.now() - began >= QUIET_MS) progress.show(done, total);
        yield chunk;
      }
    } finally {
      progress.end();
    }
  }
  return Readable.from(reportProgress());
}

const ORDINARY: readonly unknown[] = ['file', 'contiguous-file', 'directory', 'symlink', 'link'];

/** Filters a tar archive, without devices and pipes: as root, tar would create whatever device the machine names. */
export function withoutDevices(archive: AsyncIterable<Uint8Array>, onLeftOut: () => void): Readable {
  const reader = tarReader();
  const writer = pack();
  const fail = (error: unknown) => writer.destroy(error instanceof Error ? error : new Error(String(error)));

  async function copyEntries(): Promise<void> {
    for await (const entry of reader) {
      const { header } = entry;
      if (!ORDINARY.includes(header.type)) {
        onLeftOut();
        entry.resume();
      } else {
        await pipeline(entry, writer.entry(header));
      }
    }
    writer.finalize();
  }

  const source = Readable.from(archive);
  source.on('error', (error) => reader.destroy(error));
  source.pipe(reader);
  copyEntries().catch(fail);
  return Readable.from(writer);
}

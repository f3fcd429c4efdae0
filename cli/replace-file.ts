import { access, constants, readFile, realpath, stat } from 'node:fs/promises';
import { parse } from 'node:path';
import { RdError } from '../src/errors.ts';
import { editUserFile } from '../src/host-integration/user-file.ts';
import { writeFileAtomic } from '../src/storage/atomic-file.ts';
import { ioError } from '../src/storage/io-error.ts';

const ADVICE = 'Make the file writable, or name another one with --out-file FILE.';

/**
 * Replaces the content of a file that was read before: at every instant it has the old or the new content. Owner, permissions and
 * attributes stay; of a link, the file that it leads to is replaced.
 * @throws RdError `ERR_IO` for a file that is read-only, or that somebody else has changed since; nothing is written then.
 */
export async function replaceFile(path: string, before: Uint8Array, after: string): Promise<void> {
  const file = await realpath(path).catch((cause: unknown) => {
    throw ioError('read', path, cause);
  });
  const { mode } = await stat(file);
  // An administrator may write everything, and a file that nobody may write was meant to stay as it is.
  const writable =
    (mode & 0o222) !== 0 &&
    (await access(file, constants.W_OK).then(
      () => true,
      () => false,
    ));
  if (!writable) throw new RdError('ERR_IO', `${path} was not changed: it is read-only`, { advice: ADVICE });
  const same = (now: Buffer) => {
    if (!now.equals(before)) {
      throw new RdError('ERR_IO', `${path} was not changed: another program has written it meanwhile`, {
        advice: 'Try again.',
      });
    }
  };
  if (process.platform === 'win32') {
    same(await readFile(file));
    await writeFileAtomic(file, after, { mode });
    return;
  }
  await editUserFile(
    file,
    (text) => {
      same(Buffer.from(text ?? '', 'latin1'));
      return Buffer.from(after).toString('latin1');
    },
    { within: [parse(file).root], shared: true },
  );
}

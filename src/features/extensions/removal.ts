import type { ExtensionsInput } from './contract.ts';
import { idOf } from './directory.ts';

/** Removes the files first, atomically; a crash after that ends in the same removal. */
export async function removeExtension(
  name: string,
  { files, record, engine, log }: Pick<ExtensionsInput, 'files' | 'record' | 'engine' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  const deleteFiles = await files.remove(name);
  await record(({ [name]: _gone, ...rest }) => rest);
  await deleteFiles();
  // With the engine off, its container is removed when it next comes up.
  await engine()
    ?.companions?.remove(idOf(name), signal)
    .catch((error: unknown) => log('warn', 'the container of an extension could not be removed', { name, error }));
  log('info', 'extension uninstalled', { name });
}

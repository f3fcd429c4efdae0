import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import type { OpenImage } from '../../drivers/driver.ts';
import { RdError } from '../../errors.ts';
import { parseExtensionImage } from '../../settings/extension-image.ts';
import type { Platform } from '../../settings/field.ts';
import { fullName } from '../../settings/image-reference.ts';
import { installError, invalidMetadata } from './contract.ts';
import { type Budget, extract, fullBudget, readFileOf } from './extract.ts';
import { METADATA_LIMIT, type Metadata, OWN_IMAGE, parseMetadata } from './metadata.ts';

export interface StagingInput {
  image: OpenImage;
  /** The image as requested. */
  id: string;
  /** `name:tag` of the extension's own image, for containers that use it. */
  reference: string;
  tag: string;
  /** Directory to stage in; must be empty. */
  directory: string;
  platform: Platform;
}

/**
 * Stages an extension in its on-disk layout (docs/extensions.md), `version.txt` last. Throws the refusals of `contract.ts`; the
 * directory is then unusable.
 */
export async function stageExtension(input: StagingInput): Promise<Metadata> {
  const { image, directory, tag } = input;
  const metadata = await metadataOf(input);
  const copy = copier(input, fullBudget());
  await copy('file', metadata.icon, `icon${extension(metadata.icon)}`, `icon file ${metadata.icon}`);
  for (const { name, root } of metadata.ui) await copy('directory', root, join('ui', name), `UI ${name}`);
  await mkdir(join(directory, 'bin'));
  for (const path of metadata.binaries) {
    const place = join('bin', basename(path));
    await copy('file', path, place, `host binary ${path}`);
    await chmod(join(directory, place), 0o755);
  }
  const { composefile } = metadata.vm;
  if (composefile !== undefined) {
    await copy('file', composefile, join('compose', 'compose.yaml'), `compose file ${composefile}`);
  }
  await writeJson(join(directory, 'metadata.json'), metadata.document);
  await writeJson(join(directory, 'labels.json'), image.labels);
  await writeFile(join(directory, 'version.txt'), tag, { flush: true });
  return metadata;
}

/** Returns the image that `vm.image` runs, fully qualified, with the extension's own name filled in; undefined without one. */
export function companionImage(metadata: Metadata, reference: string): string | undefined {
  const written = metadata.vm.image?.replace(OWN_IMAGE, () => reference);
  const image = written === undefined ? undefined : parseExtensionImage(written);
  return image ? `${fullName(image)}:${image.tag ?? 'latest'}` : written;
}

async function metadataOf({ image, id, platform }: StagingInput): Promise<Metadata> {
  let text: string;
  try {
    const archive = await image.archive('/metadata.json');
    if (!archive) throw new RdError('ERR_EXTENSION_INVALID', 'the image has no /metadata.json');
    text = (await readFileOf(archive, METADATA_LIMIT)).toString('utf8');
  } catch (error) {
    throw error instanceof RdError && error.code === 'ERR_CANCELLED' ? error : invalidMetadata(id, error);
  }
  const parsed = parseMetadata(text, platform);
  if ('metadata' in parsed) return parsed.metadata;
  throw invalidMetadata(id, new RdError('ERR_EXTENSION_INVALID', parsed.problem));
}

/** Returns a function that copies a path of the image into the directory. `what` completes the wire text `Could not copy …`. */
function copier({ image, id, directory }: StagingInput, budget: Budget) {
  return async (kind: 'file' | 'directory', path: string, place: string, what: string): Promise<void> => {
    const destination = join(directory, place);
    await mkdir(dirname(destination), { recursive: true });
    try {
      const archive = await image.archive(path);
      if (!archive) throw new RdError('ERR_EXTENSION_INVALID', `the image has no ${path}`);
      const actualKind = await extract(archive, destination, budget);
      if (actualKind !== kind) throw new RdError('ERR_EXTENSION_INVALID', `${path} is a ${actualKind} in the image`);
    } catch (error) {
      // A full disk or an unreachable engine is not the image's fault.
      if (!(error instanceof RdError) || error.code !== 'ERR_EXTENSION_INVALID') throw error;
      throw installError(id, `Could not copy ${what}`, error);
    }
  };
}

function extension(path: string): string {
  const ending = posix.extname(path);
  return /^\.[A-Za-z0-9]{1,16}$/.test(ending) ? ending : '';
}

/** Writes JSON on one line: indented, a deeply nested document can be a hundred times as long. */
async function writeJson(path: string, value: object): Promise<void> {
  await writeFile(path, JSON.stringify(value), { flush: true });
}

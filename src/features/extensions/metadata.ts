import { posix } from 'node:path';
import { defined, isObject, isTooDeep, type JsonObject, type JsonValue, parseObject } from '../../json.ts';
import { parseExtensionImage } from '../../settings/extension-image.ts';
import type { Platform } from '../../settings/field.ts';

/** Maximum size of an image's `metadata.json`. */
export const METADATA_LIMIT = 1024 * 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal would obey a name with one
const CONTROL = /[\0-\x1f\x7f]/;
/** Maximum length of a path in the metadata: the kernel's limit. */
const MAX_PATH = 4096;
/** Maximum number of user interface parts and programs: each needs an engine request. */
const MAX_PARTS = 100;
const MAX_BINARIES = 1000;

/** Matches the placeholder for the image of the extension itself. */
export const OWN_IMAGE = /\$\{?DESKTOP_PLUGIN_IMAGE\}?/g;

/** The contents of an extension's `metadata.json` (docs/extensions.md). */
export interface Metadata {
  /** The document as written, including unknown keys; `vm` is always present. */
  document: JsonObject;
  /** Path of the icon in the image. */
  icon: string;
  /** Name and image directory of each part of the user interface. */
  ui: { name: string; root: string }[];
  /** Image paths of the programs for this platform. */
  binaries: string[];
  vm: { image?: string; composefile?: string };
  /** Unsupported requests that are deliberately ignored, as clauses. */
  leftOut: string[];
}

/** Parses `metadata.json`. Returns an error as a clause: `"icon" is missing`. */
export function parseMetadata(text: string, platform: Platform): { metadata: Metadata } | { problem: string } {
  const document = objectOf(text);
  if (!document) return { problem: 'metadata.json is not a JSON object' };
  try {
    return { metadata: read(document, platform) };
  } catch (error) {
    if (error instanceof Mistake) return { problem: `metadata.json: ${error.message}` };
    throw error;
  }
}

/** An invalid document; caught by `parseMetadata`. */
class Mistake extends Error {}

function objectOf(text: string): JsonObject | undefined {
  if (isTooDeep(text)) return undefined;
  return parseObject(text.replace(/^\uFEFF/, ''));
}

function read(document: JsonObject, platform: Platform): Metadata {
  const { icon, vm = {}, host = {} } = document;
  if (icon === undefined) throw new Mistake('"icon" is missing');
  if (!isObject(vm)) throw new Mistake('"vm" is not an object');
  if (!isObject(host)) throw new Mistake('"host" is not an object');
  const machine = machineOf(vm);
  return {
    document: { ...document, vm },
    icon: pathIn(icon, 'icon'),
    ui: interfaces(document.ui),
    binaries: binariesFor(platform, host.binaries),
    vm: machine,
    leftOut: leftOut(vm, host, platform),
  };
}

function machineOf(vm: JsonObject): Metadata['vm'] {
  const { image, composefile } = vm;
  if (image !== undefined && (typeof image !== 'string' || image === '')) throw new Mistake('"vm.image" is not a name');
  if (image !== undefined && !parseExtensionImage(image.replaceAll(OWN_IMAGE, 'image'))) {
    throw new Mistake(`"vm.image" is not the name of an image: ${JSON.stringify(image)}`);
  }
  if (image !== undefined && composefile !== undefined) throw new Mistake('"vm" has both an image and a composefile');
  return {
    ...defined({ image }),
    ...(composefile === undefined ? {} : { composefile: pathIn(composefile, 'vm.composefile') }),
  };
}

function interfaces(ui: JsonValue | undefined): Metadata['ui'] {
  if (ui === undefined) return [];
  if (!isObject(ui)) throw new Mistake('"ui" is not an object');
  const parts = Object.entries(ui);
  if (parts.length > MAX_PARTS) throw new Mistake(`"ui" has more than ${MAX_PARTS} parts`);
  return parts.map(([name, part]) => {
    if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/.test(name))
      throw new Mistake(`"ui" has the name ${JSON.stringify(name)}, which cannot be that of a directory`);
    if (!isObject(part)) throw new Mistake(`"ui.${name}" is not an object`);
    return { name, root: pathIn(part.root, `ui.${name}.root`) };
  });
}

/** Returns the programs for a platform. Each list entry names files for some platforms. Two with the same base name would be one file. */
function binariesFor(platform: Platform, list: JsonValue | undefined): string[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new Mistake('"host.binaries" is not a list');
  const word = platform === 'win32' ? 'windows' : platform;
  const paths = list.flatMap((entry, index) => {
    if (!isObject(entry)) throw new Mistake(`"host.binaries[${index}]" is not an object`);
    const files = entry[word];
    if (files === undefined) return [];
    if (!Array.isArray(files)) throw new Mistake(`"host.binaries[${index}].${word}" is not a list`);
    return files.map((file) => {
      const where = `host.binaries[${index}].${word}`;
      if (!isObject(file)) throw new Mistake(`"${where}" has an entry that is not an object`);
      return pathIn(file.path, `${where}.path`);
    });
  });
  if (paths.length > MAX_BINARIES) throw new Mistake(`"host.binaries" has more than ${MAX_BINARIES} files`);
  const names = new Set<string>();
  for (const path of paths) {
    const name = posix.basename(path);
    if (names.has(name)) throw new Mistake(`"host.binaries" has two files called ${JSON.stringify(name)}`);
    names.add(name);
  }
  return paths;
}

function leftOut(vm: JsonObject, host: JsonObject, platform: Platform): string[] {
  const scripts = ['x-rd-install', 'x-rd-uninstall', 'x-rd-shutdown'].filter((name) => {
    const script = host[name];
    return isObject(script) && script[platform === 'win32' ? 'windows' : platform] !== undefined;
  });
  return [
    ...scripts.map((name) => `the script host.${name} is not run: nothing out of an image runs on this host`),
    ...(vm.exposes === undefined ? [] : ['the socket of vm.exposes is not served: there is no window to use it']),
    ...(vm.composefile === undefined ? [] : ['the services of vm.composefile are not started: the file is only kept']),
  ];
}

/** Returns a path in the image, normalized and below its root. Refuses any `..`, even one that would stay inside. */
function pathIn(value: JsonValue | undefined, where: string): string {
  if (value === undefined) throw new Mistake(`"${where}" is missing`);
  if (typeof value !== 'string' || value === '' || CONTROL.test(value)) throw new Mistake(`"${where}" is not a path`);
  if (value.length > MAX_PATH) throw new Mistake(`"${where}" is longer than ${MAX_PATH} characters`);
  if (value.split('/').includes('..')) throw new Mistake(`"${where}" has ".." in it: ${JSON.stringify(value)}`);
  const path = posix.normalize(`/${value}`).replace(/\/$/, '');
  if (path === '') throw new Mistake(`"${where}" is the whole image`);
  return path;
}

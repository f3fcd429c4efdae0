import { posix } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { RdError } from '../../errors.ts';

/** The location of a file's content: entry n of a layer's archive. */
interface Content {
  layer: number;
  entry: number;
  size: number;
}

/** The merged file system of an image's layers, without content. */
export type TreeNode =
  | { kind: 'directory'; mode: number; children: Map<string, TreeNode> }
  | { kind: 'file'; mode: number; content: Content }
  | { kind: 'link'; target: string }
  /** A device, a pipe, a dangling hard link: listed, and never extracted. */
  | { kind: 'other' };
export type DirectoryNode = Extract<TreeNode, { kind: 'directory' }>;

/** One entry of a layer's archive. */
export interface LayerEntry {
  name: string;
  type: string;
  mode: number;
  size: number;
  linkname: string;
}

const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
/** The kernel's limit for followed links. */
const MAX_LINKS = 40;
/** The kernel's limit for the length of a path. */
const MAX_PATH = 4096;
/** Directory depth. Each of a million files may reach it, so it is lower than the path length would allow. */
const MAX_DEPTH = 256;
/** Entries processed before yielding to the event loop. */
const AT_A_TIME = 1000;

export function emptyTree(): DirectoryNode {
  return { kind: 'directory', mode: 0o755, children: new Map() };
}

/**
 * Adds the entries of the next layer in archive order, as a runtime would unpack it. A layer's whiteouts apply to the layers below it,
 * wherever they appear in the archive.
 */
export async function addLayer(root: DirectoryNode, layer: number, entries: readonly LayerEntry[]): Promise<void> {
  for (const [entry, { name }] of entries.entries()) {
    if (entry % AT_A_TIME === 0) await setImmediate();
    if (!name.includes(WHITEOUT)) continue;
    const { last, parents } = placeOf(name);
    if (last === OPAQUE) directoryAt(root, parents).children.clear();
    else if (last.startsWith(WHITEOUT)) directoryAt(root, parents).children.delete(last.slice(WHITEOUT.length));
  }
  for (const [entry, header] of entries.entries()) {
    if (entry % AT_A_TIME === 0) await setImmediate();
    const { last, parents } = placeOf(header.name);
    if (last === '' || last.startsWith(WHITEOUT)) continue;
    const { children } = directoryAt(root, parents);
    children.set(last, nodeOf(root, { layer, entry, size: header.size }, header, children.get(last)));
  }
}

/** Throws `ERR_DRIVER_FAILED` for an entry that no file system accepts, or that would be slow to add. */
export function checkEntry({ name, linkname }: LayerEntry): void {
  for (const path of [name, linkname]) {
    if (path.length > MAX_PATH) throw tooMuch(path, `too long: ${path.length} characters`);
    const depth = partsOf(path).length;
    if (depth > MAX_DEPTH) throw tooMuch(path, `too deep: ${depth} levels`);
  }
}

function tooMuch(path: string, what: string): RdError {
  const start = JSON.stringify(path.slice(0, 60));
  return new RdError('ERR_DRIVER_FAILED', `a layer of the image has a name that is ${what}; it begins with ${start}`);
}

/**
 * Returns the node at a path. Links are followed as in a container: the root of the image is the root, and `..` never leads above it. Undefined for a
 * missing path, for link loops, and for a path longer than any entry can have.
 */
export function resolve(root: DirectoryNode, path: string): { name: string; node: TreeNode } | undefined {
  if (path.length > MAX_PATH) return undefined;
  // Reversed, so that the next step is last.
  const rest = steps(path).reverse();
  const above: DirectoryNode[] = [];
  let at = root;
  let links = 0;
  let name = '';
  for (let part = rest.pop(); part !== undefined; part = rest.pop()) {
    if (part === '..') {
      at = above.pop() ?? root;
      continue;
    }
    const node = at.children.get(part);
    if (!node) return undefined;
    name = part;
    if (node.kind === 'link') {
      links += 1;
      if (links > MAX_LINKS) return undefined;
      if (node.target.startsWith('/')) {
        above.length = 0;
        at = root;
      }
      rest.push(...steps(node.target).reverse());
    } else if (node.kind === 'directory') {
      above.push(at);
      at = node;
    } else {
      return rest.length === 0 ? { name, node } : undefined;
    }
  }
  return { name: name === '' || at === root ? 'root' : name, node: at };
}

function nodeOf(
  root: DirectoryNode,
  content: Content,
  { type, mode, linkname }: LayerEntry,
  before: TreeNode | undefined,
): TreeNode {
  switch (type) {
    case 'directory':
      return { kind: 'directory', mode, children: before?.kind === 'directory' ? before.children : new Map() };
    case 'file':
    case 'contiguous-file':
      return { kind: 'file', mode, content };
    case 'symlink':
      return { kind: 'link', target: linkname };
    case 'link': {
      const parts = partsOf(linkname);
      const original = parts.reduce<TreeNode | undefined>(
        (node, part) => (node?.kind === 'directory' ? node.children.get(part) : undefined),
        root,
      );
      return original?.kind === 'file' || original?.kind === 'link' ? original : { kind: 'other' };
    }
    default:
      return { kind: 'other' };
  }
}

/** Returns the directory at a path, creating directories that a layer omits or has as another kind of entry. */
function directoryAt(root: DirectoryNode, parts: readonly string[]): DirectoryNode {
  let directory = root;
  for (const part of parts) {
    const child = directory.children.get(part);
    if (child?.kind === 'directory') {
      directory = child;
    } else {
      const made = emptyTree();
      directory.children.set(part, made);
      directory = made;
    }
  }
  return directory;
}

function placeOf(name: string): { last: string; parents: string[] } {
  const parents = partsOf(name);
  return { last: parents.pop() ?? '', parents };
}

/** Splits a name of an archive into parts that never lead above its root. */
function partsOf(name: string): string[] {
  return posix
    .normalize(`/${name}`)
    .split('/')
    .filter((part) => part !== '');
}

/** Splits a path into steps. Keeps `..`, because its meaning changes after a link. */
function steps(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

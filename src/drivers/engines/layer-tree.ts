import { posix } from 'node:path';

/** Where the content of a file is: the n-th entry of the archive of a layer. */
interface Content {
  layer: number;
  entry: number;
  size: number;
}

/** The file system that the layers of an image make, without the content. */
export type TreeNode =
  | { kind: 'directory'; mode: number; children: Map<string, TreeNode> }
  | { kind: 'file'; mode: number; content: Content }
  | { kind: 'link'; target: string }
  /** A device, a pipe, a hard link to nothing: named, so that it is found, and never handed out. */
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
/** As many as the kernel follows. */
const MOST_LINKS = 40;

export function emptyTree(): DirectoryNode {
  return { kind: 'directory', mode: 0o755, children: new Map() };
}

/**
 * Adds the entries of the next layer, in the order of its archive, as a runtime would that unpacks one over the other. What a
 * layer takes away are things of the layers below it, wherever in the archive it says so.
 */
export function addLayer(root: DirectoryNode, layer: number, entries: readonly LayerEntry[]): void {
  const placed = entries.map((header, entry) => {
    const parts = partsOf(header.name);
    return { header, entry, last: parts.at(-1) ?? '', parents: parts.slice(0, -1) };
  });
  for (const { last, parents } of placed) {
    if (last === OPAQUE) directoryAt(root, parents).children.clear();
    else if (last.startsWith(WHITEOUT)) directoryAt(root, parents).children.delete(last.slice(WHITEOUT.length));
  }
  for (const { header, entry, last, parents } of placed) {
    if (last === '' || last.startsWith(WHITEOUT)) continue;
    const { children } = directoryAt(root, parents);
    children.set(last, nodeOf(root, { layer, entry, size: header.size }, header, children.get(last)));
  }
}

/**
 * What is at a path. Links are followed as in a container: the root of the image is the root, and `..` never leads above it.
 * Undefined where there is nothing, and for links that lead in circles.
 */
export function resolve(root: DirectoryNode, path: string): { name: string; node: TreeNode } | undefined {
  let rest = steps(path);
  let at: DirectoryNode[] = [root];
  let links = 0;
  let name = '';
  while (rest.length > 0) {
    const [part = '', ...more] = rest;
    rest = more;
    if (part === '..') {
      if (at.length > 1) at = at.slice(0, -1);
      continue;
    }
    const node = at.at(-1)?.children.get(part);
    if (!node) return undefined;
    name = part;
    if (node.kind === 'link') {
      links += 1;
      if (links > MOST_LINKS) return undefined;
      if (node.target.startsWith('/')) at = [root];
      rest = [...steps(node.target), ...rest];
    } else if (node.kind === 'directory') {
      at = [...at, node];
    } else {
      return rest.length === 0 ? { name, node } : undefined;
    }
  }
  return { name: name === '' || at.length === 1 ? 'root' : name, node: at.at(-1) ?? root };
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

/** Directories that a layer does not name, or has as something else, are made. */
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

/** Names of an archive never lead above its root. */
function partsOf(name: string): string[] {
  return posix
    .normalize(`/${name}`)
    .split('/')
    .filter((part) => part !== '');
}

/** With `..` kept: after a link it means something else than before. */
function steps(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

import { createClient } from '../../src/client/client.ts';
import {
  type ExtensionReply,
  installExtension,
  listExtensions,
  uninstallExtension,
} from '../../src/client/extensions.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import { waitingLine } from '../../src/os/waiting-line.ts';
import { noArguments, oneArgument } from '../arguments/arguments.ts';
import { mistake } from '../arguments/values.ts';
import { defineCommand, type Invocation, type Io } from '../command.ts';
import { defineGroup } from '../group.ts';
import { jsonText, plainText } from '../views/text.ts';

interface ExtensionChange {
  /** Beginning of the line on stdout: `Installing`. */
  word: string;
  /** Message while waiting: shown on a terminal; elsewhere printed when it takes long. */
  meanwhile: string;
  call: typeof installExtension;
  /** Message when nothing changed: `is already installed`. */
  already: string;
}

/** Changes an extension. Prints `Installing image ID: ANSWER` to stdout, or the status as JSON there and the answer on stderr. */
async function changeExtension(
  { word, meanwhile, call, already }: ExtensionChange,
  { args, io, connect }: Pick<Invocation, 'args' | 'io' | 'connect'>,
): Promise<number> {
  const id = oneArgument(args);
  const client = createClient(await connect());
  const line = waitingLine(io);
  line.show(`${meanwhile} ${plainText(id)} …`);
  const reply = await call(client, id, { signal: io.signal }).finally(line.end);
  if (reply.status < 200 || reply.status > 299) return printRefusal(reply, io);
  io.out(`${word} image ${id}: ${reply.text}\n`);
  if (reply.status === 204) io.err(`note: nothing to do, ${plainText(id)} ${already}\n`);
  for (const clause of reply.leftOut) io.err(`note: ${plainText(clause)}\n`);
  return 0;
}

/** Prints the JSON reply of Rancher Desktop's `rdctl`. `quiet` omits the answer. */
function printRefusal({ status, statusText, text, reason, note }: ExtensionReply, io: Io, quiet = false): number {
  io.out(`${JSON.stringify({ message: `${status} ${statusText}` })}\n`);
  if (text !== '' && !quiet) io.err(`${text}\n`);
  if (reason !== undefined && !quiet && !text.includes(reason)) io.err(`reason: ${plainText(reason)}\n`);
  if (note !== undefined) io.err(`${note}\n`);
  return 1;
}

const extensionInstall = defineCommand({
  name: 'extension install',
  summary: 'Install an extension, or a different version of it',
  usage: 'IMAGE[:TAG]',
  description: `Pulls the image with the running engine and extracts the extension from it. Without a tag, the
highest version in the registry and the engine is installed. A different installed version is
replaced. If the same version is already installed, the command does nothing and prints a note.

  rdctl extension install registry.example.com/team/tool:1.2`,
  flags: { force: { type: 'boolean', summary: 'Accepted for compatibility; has no effect' } },
  classic: true,
  run: (invocation) =>
    changeExtension(
      { word: 'Installing', meanwhile: 'Fetching', call: installExtension, already: 'is already installed' },
      invocation,
    ),
});

const extensionList = defineCommand({
  name: 'extension list',
  aliases: ['ls'],
  summary: 'List the installed extensions',
  usage: '',
  description: `Prints a heading, an empty line, and one IMAGE:TAG per line. With -o json, prints the response of
GET /v1/extensions: version, metadata and labels by image name.

  rdctl extension list -o json`,
  flags: {
    output: { type: 'string', short: 'o', summary: 'Output format', values: ['json', 'yaml'], yamlFromJson: true },
  },
  classic: true,
  async run({ flags, args, io, connect }) {
    noArguments(args, 'extension list');
    const { reply, document } = await listExtensions(createClient(await connect()), { signal: io.signal });
    if (!document) return printRefusal(reply, io, true);
    if (flags.output === 'json') io.out(jsonText(document));
    else io.out(tableOf(document));
    return 0;
  },
});

function tableOf(document: JsonObject): string {
  const lines = Object.entries(document).map(([name, record]) => {
    const version = isObject(record) && typeof record.version === 'string' ? record.version : '';
    return plainText(`${name}:${version}`);
  });
  if (lines.length === 0) return 'No extensions are installed.\n';
  const order = (text: string) => text.toLowerCase();
  lines.sort((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0));
  return `Extension IDs\n\n${lines.join('\n')}\n`;
}

const extensionUninstall = defineCommand({
  name: 'extension uninstall',
  summary: 'Uninstall an extension',
  usage: 'IMAGE[:TAG]',
  description: `Removes the extension's files and, with moby, its container; the image stays in the engine. With a tag, only that
version is uninstalled. If it is not installed, the command does nothing and prints a note.

  rdctl extension uninstall registry.example.com/team/tool`,
  flags: {},
  classic: true,
  run: (invocation) =>
    changeExtension(
      { word: 'Uninstalling', meanwhile: 'Removing', call: uninstallExtension, already: 'is not installed' },
      invocation,
    ),
});

export const extension = defineGroup({
  name: 'extension',
  summary: 'Install, list and uninstall extensions',
  description: `An extension is a container image with a file metadata.json. Its files are extracted from the
image without running it. A profile can declare extensions, too, in application.extensions.installed.`,
  flags: {},
  classic: true,
  subcommands: [extensionInstall, extensionUninstall, extensionList],
  async otherwise() {
    throw mistake('no subcommand given.\n\nUsage: rdctl extension [install | uninstall | list] [options...]');
  },
});

import { createClient } from '../../../src/client/client.ts';
import { listExtensions } from '../../../src/client/extensions.ts';
import { isObject, type JsonObject } from '../../../src/json.ts';
import { noArguments } from '../../arguments/arguments.ts';
import { defineCommand } from '../../command.ts';
import { plainText } from '../../views/value.ts';
import { refused } from './call.ts';

export const extensionList = defineCommand({
  name: 'extension list',
  aliases: ['ls'],
  summary: 'List the installed extensions',
  usage: '',
  description: `A heading, an empty line, and a line IMAGE:TAG for each. With -o json the object of GET /v1/extensions:
version, metadata and labels by image name.`,
  flags: { output: { type: 'string', short: 'o', summary: 'Format; there is one', values: ['json'] } },
  classic: true,
  async run({ flags, args, io, connect }) {
    noArguments(args, 'extension list');
    const { reply, document } = await listExtensions(createClient(await connect()), { signal: io.signal });
    if (!document) return refused(reply, io, true);
    if (flags.output === 'json') io.out(`${JSON.stringify(document, null, 2)}\n`);
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

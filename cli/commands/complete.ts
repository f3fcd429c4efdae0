import { defineCommand, type Io } from '../command.ts';
import { COMMANDS } from '../commands.ts';
import { completionContext } from '../completion/ask.ts';
import { type Offers, offersFor } from '../completion/offers.ts';
import { liveSources } from '../completion/sources.ts';

/** The last line of a completion answer, in the protocol of Rancher Desktop's `rdctl`. */
const DIRECTIVE = { files: 0, nothing: 4, directories: 16 } as const;

/** `rdctl __complete WORD… ''`: a line per word, a tab before what it means, and `:N` at the end. */
export const complete = answering('__complete', true);
/** The same without descriptions. */
export const completeNoDesc = answering('__completeNoDesc', false);

function answering(name: string, descriptions: boolean) {
  return defineCommand({
    name,
    summary: descriptions ? 'Answer a completion script' : 'Answer a completion script, words alone',
    usage: '[WORD]...',
    description: 'Of the words of a command line, the last is the one that is being typed; it may be empty.',
    flags: {},
    classic: true,
    passesWords: true,
    async run({ args, io }) {
      const { offers, otherwise } = await answer(args.length === 0 ? [''] : args, io);
      const lines = offers.map(({ word, about }) => (descriptions && about ? `${word}\t${oneLine(about)}` : word));
      io.out([...lines, `:${DIRECTIVE[otherwise]}\n`].join('\n'));
      return 0;
    },
  });
}

async function answer(words: readonly string[], io: Io): Promise<Offers> {
  const question = await completionContext(words, COMMANDS);
  const command = question.what === 'argument' ? question.command : undefined;
  return offersFor(question, io.platform, COMMANDS, liveSources(words, command, io));
}

/** A completion has one line per word, so only the first sentence fits. */
function oneLine(text: string): string {
  return (text.split(/\n|(?<=\.) /, 1)[0] ?? '').replace(/[\t\r]/g, ' ').replace(/\.$/, '');
}

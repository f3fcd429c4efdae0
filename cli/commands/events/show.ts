import type { StreamMessage } from '../../../src/client/event-stream.ts';
import type { Io } from '../../command.ts';
import { eventLine, statusLineText } from '../../views/event-text.ts';
import { timeText } from '../../views/history-text.ts';
import { style } from '../../views/text.ts';

/** Prints messages: one line each for people, or one JSON document each. */
export function showMessages(output: string | undefined, io: Io): (message: StreamMessage) => void {
  if (output === 'json') return (message) => io.out(`${JSON.stringify(message)}\n`);
  const paint = style(io.color);
  let status = '';
  return (message) => {
    if (message.kind === 'Event') {
      io.out(eventLine(message, paint));
      return;
    }
    const text = statusLineText(message);
    // Most changes of the document are in parts that the line leaves out, or are the end of a step before the next one.
    const isNews = text !== status && !status.startsWith(`${text}, `);
    if (isNews) io.out(`${timeText(new Date().toISOString())}  ${'status'.padEnd(13)}${text}\n`);
    if (isNews) status = text;
  };
}

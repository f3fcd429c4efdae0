import type { StreamMessage } from '../../src/client/event-stream.ts';
import type { EventDocument } from '../../src/events/event.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { Io } from '../command.ts';
import { authorText, changesBrief, timeText } from './history-text.ts';
import { durationText, plainText, type Style, style } from './text.ts';
import { phaseText } from './work-text.ts';

/** Columns of the longest type, plus a gap. */
const TYPE_WIDTH = 'maintenance'.length + 2;

/** Returns a printer of messages: one line each for people, or one JSON document each. */
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
    // Most changes of the document concern parts that the line leaves out, or the end of a step before the next one.
    const isNews = text !== status && !status.startsWith(`${text}, `);
    if (isNews) io.out(`${timeText(new Date().toISOString())}  ${'status'.padEnd(13)}${text}\n`);
    if (isNews) status = text;
  };
}

/** Formats an event on one line: time, type and description. */
function eventLine(event: EventDocument, paint: Style): string {
  return `${timeText(event.at)}  ${plainText(event.type).padEnd(TYPE_WIDTH)}${factsText(event, paint)}\n`;
}

/** Formats a status on one line. */
function statusLineText({ converged, generation, backendState, phases, conditions }: StatusDocument): string {
  const step = phases.findLast(({ ms }) => ms === undefined);
  const reason = conditions.find(({ type }) => type === 'Converged')?.reason ?? '';
  const state = converged ? 'converged' : `${plainText(reason)}${step ? `, ${phaseText(step)}` : ''}`;
  return `${backendState}, generation ${generation}: ${state}`;
}

function factsText(event: EventDocument, paint: Style): string {
  switch (event.type) {
    case 'change': {
      const { generation, changes, loss } = event.change;
      const what =
        changes.length === 0 && !loss && event.change.by.how !== 'restore'
          ? 'another attempt'
          : changesBrief(event.change);
      return `generation ${generation} by ${authorText(event.change)}: ${what}`;
    }
    case 'outcome': {
      const { generation, result, reason } = event.outcome;
      const word = result === 'converged' ? paint.good(result) : paint.bad(plainText(result));
      return `generation ${generation} ${word}${colon(reason)}`;
    }
    case 'drift': {
      const { condition, reason, message } = event.drift;
      const what = condition === undefined ? '' : `${plainText(condition)}: ${plainText(reason ?? '')}: `;
      return paint.warn(`${what}${plainText(message)}`);
    }
    case 'phase': {
      const { name, ms, outcome, reason } = event.phase;
      if (ms === undefined) return phaseText(event.phase);
      const word = outcome === 'failed' ? paint.bad('failed') : 'done';
      return `${plainText(name)} ${word} (${durationText(ms)})${colon(reason)}`;
    }
    case 'condition': {
      const { type, reason, concern, message } = event.condition;
      const text = `${plainText(type)}: ${plainText(reason)}: ${plainText(message)}`;
      return concern === 'attention' ? paint.bad(text) : text;
    }
    case 'apply': {
      const { generation, state, step, error } = event.apply;
      if (step) return `generation ${generation}: ${plainText(step.what)} ${plainText(step.name)}`;
      return `generation ${generation}: ${state === 'failed' ? paint.bad(state) : state}${colon(error?.message)}`;
    }
    case 'maintenance': {
      const { action, state, error } = event.maintenance;
      return `${plainText(action)} ${error === undefined ? state : paint.bad('failed')}${colon(error)}`;
    }
    case 'notice':
      return plainText(event.notice);
    case 'service': {
      const { state, version, pid } = event.service;
      return `${plainText(state)} (version ${plainText(version)}, pid ${pid})`;
    }
    case 'reset':
      return paint.warn(plainText(event.reset.reason));
    default:
      return newerText(event);
  }
}

/** Formats an event that a newer service added. */
function newerText(event: never): string {
  return plainText(JSON.stringify(event));
}

function colon(text: string | undefined): string {
  return text === undefined ? '' : `: ${plainText(text)}`;
}

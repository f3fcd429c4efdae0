import type { ForeseenDrift } from '../../src/plan/change.ts';
import { momentText } from '../../src/settings/maintenance-window.ts';
import { pathText, plainText, valueText } from './text.ts';

/** Describes the reaction of a kept profile to a field: `images.namespace is set back to web at once by the kept profile team`. */
export function foreseenText(drift: ForeseenDrift, who = `the kept profile ${plainText(drift.profile)}`): string {
  return `${pathText(drift)} ${fateText(drift, who)}`;
}

function fateText({ after, state, until, heal, message }: ForeseenDrift, who: string): string {
  if (state === 'healing') {
    const back = after === undefined ? 'is removed again' : `is set back to ${valueText(after)}`;
    return `${back} at once by ${who}`;
  }
  if (state === 'deferred' && until !== undefined) {
    const then = after === undefined ? 'is removed' : `is set to ${valueText(after)}`;
    return `${then} by ${who}, ${momentText(Date.parse(until), Date.now())}`;
  }
  const why = message === undefined ? '' : `. ${plainText(message).replace(/\.$/, '')}`;
  return `will differ from ${who} (${heal})${why}`;
}

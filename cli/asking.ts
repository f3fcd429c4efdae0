import type { Connection } from '../src/client/connection.ts';
import type { HomeService } from '../src/client/home-service.ts';
import type { Invocation } from './command.ts';

/** What finding a service needs of an invocation. */
export type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

/** What the home says when no service of it lives that stays; a stale connection file then means nothing. */
export type Absence = Exclude<HomeService, { kind: 'running' }>;

export type Asked<T> = { answer: T } | { absent: Absence };

/**
 * Asks the service that the connection file leads to. Where nobody answers, the lock of this home decides whether one is there at all.
 * One that has begun since the file was read has another file, and is asked instead.
 * @throws the error, said better where the lock knows more, when a service lives, was named, or is another application's.
 */
export async function askService<T>(caller: Caller, ask: (connection: Connection) => Promise<T>): Promise<Asked<T>> {
  for (;;) {
    let connection: Connection | undefined;
    try {
      connection = await caller.connect();
      return { answer: await ask(connection) };
    } catch (error) {
      const { absentService } = await import('./absence.ts');
      const absent = await absentService(error, caller, connection);
      if (absent !== 'moved') return { absent };
    }
  }
}

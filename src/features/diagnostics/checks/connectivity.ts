import { type Check, failed, passed } from '../check.ts';
import { probe } from '../http-probe.ts';

/** An Internet server responds, with any status. Direct, without a proxy. */
export const connectedToInternet: Check = {
  id: 'CONNECTED_TO_INTERNET',
  category: 'Networking',
  applies: () => true,
  async run({ connectivityUrl, settings }, signal) {
    const { timeout } = settings().diagnostics.connectivity;
    const { host } = new URL(connectivityUrl);
    try {
      await probe('HEAD', connectivityUrl, AbortSignal.any([signal, AbortSignal.timeout(timeout)]));
      return [passed(`The application can reach the Internet: ${host} answers.`)];
    } catch (error) {
      // Canceled: the result is unknown.
      if (signal.aborted) throw error;
      return [
        failed(`The application cannot reach the Internet: ${host} did not answer (${reasonOf(error, timeout)}).`, [
          { description: 'Check the network connection, the name server and the firewall of this computer.' },
        ]),
      ];
    }
  },
};

function reasonOf(error: unknown, timeout: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return `nothing within ${timeout} ms`;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return code ?? error.message;
}

import { readdirSync } from 'node:fs';
import { cpuUsage, memoryUsage, platform } from 'node:process';

type Register = (name: string, help: string, value: () => number) => void;

/**
 * Registers the usual metrics of a process, with the names that dashboards know, all read at the scrape. Not those of the library: its
 * observers of garbage collection and of the event loop run on for good, between scrapes as well.
 */
export function processMetrics({
  gauge,
  counter,
  startedAt,
}: Record<'gauge' | 'counter', Register> & { startedAt: string }): void {
  counter('process_cpu_seconds_total', 'Processor time of the service, in seconds.', () => {
    const { user, system } = cpuUsage();
    return (user + system) / 1e6;
  });
  gauge(
    'process_start_time_seconds',
    'Start of the service, in seconds since 1970.',
    () => Date.parse(startedAt) / 1000,
  );
  gauge('process_resident_memory_bytes', 'Resident memory of the service.', () => memoryUsage.rss());
  gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use.', () => memoryUsage().heapUsed);
  if (platform === 'linux') {
    gauge('process_open_fds', 'Open file descriptors.', () => readdirSync('/proc/self/fd').length - 1);
  }
}

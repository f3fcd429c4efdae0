import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { paired, type Result, result } from './measure.ts';
import { type BenchService, spawnTime } from './service.ts';

/** Where Debian's packages put the sources of Go libraries (`golang-github-spf13-cobra-dev`); `GOPATH` names another place. */
const GO_PATH = process.env.GOPATH ?? '/usr/share/gocode';
const COBRA = join(GO_PATH, 'src/github.com/spf13/cobra');

/** About 20 ms, which nobody notices. */
const AIM = 5;

/**
 * The standalone file against a client written in Go with cobra, as the original `rdctl` is. Empty where Go or cobra is missing: Debian's
 * `golang-go` and `golang-github-spf13-cobra-dev`.
 */
export async function goClient(
  service: BenchService,
  rounds: number,
  standalone: readonly string[],
): Promise<Result[]> {
  if (!existsSync(COBRA)) {
    process.stderr.write('go client: not measured, because Go or its library cobra is not installed\n');
    return [];
  }
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-bench-go-'));
  try {
    const client = join(folder, 'client');
    const env = {
      ...process.env,
      GOPATH: GO_PATH,
      GO111MODULE: 'off',
      CGO_ENABLED: '0',
      GOCACHE: join(folder, 'cache'),
    };
    execFileSync('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', client, 'main.go'], {
      cwd: resolve('bench/go-client'),
      env,
    });
    const results: Result[] = [];
    for (const name of ['version', 'list-settings']) {
      const subject = () => spawnTime([...standalone, name], service.env);
      await subject();
      const figures = await paired(rounds, subject, () => spawnTime([client, name], service.env));
      results.push(
        result({
          name: `one file: ${name} beside Go`,
          compared: `the standalone rdctl ${name} / a client in Go with cobra`,
          ...figures,
          aim: { sign: '<=', value: AIM },
          unit: 'ms',
          rounds,
        }),
      );
    }
    return results;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

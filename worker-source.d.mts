import type { Plugin as EsbuildPlugin } from 'esbuild';

export const workerSource: EsbuildPlugin;
export const viteWorkerSource: { name: string; enforce: 'pre'; load(id: string): Promise<string> | undefined };

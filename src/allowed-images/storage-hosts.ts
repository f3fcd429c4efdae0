import { matchesGlob } from './glob.ts';

/**
 * Hosts that well-known registries send their clients on to: for tokens and for layers. A client that is allowed an image has to
 * reach them, and on an encrypted connection nothing but their name can be seen. Except for `*.pkg.dev` they hold no images by name, so
 * reaching them without the registry's consent gives nothing.
 */
const COMPANIONS: readonly { registry: string; hosts: readonly string[] }[] = [
  {
    registry: 'docker.io',
    hosts: [
      'registry-1.docker.io',
      'index.docker.io',
      'registry.hub.docker.com',
      'auth.docker.io',
      'production.cloudflare.docker.com',
      'docker-images-prod.*.r2.cloudflarestorage.com',
      'production.cloudfront.docker.com',
    ],
  },
  { registry: 'ghcr.io', hosts: ['pkg-containers.githubusercontent.com'] },
  { registry: 'quay.io', hosts: ['*.quay.io', 'quayio-production-s3.s3.amazonaws.com'] },
  { registry: 'gcr.io', hosts: ['storage.googleapis.com'] },
  { registry: '*.gcr.io', hosts: ['storage.googleapis.com'] },
  { registry: '*.pkg.dev', hosts: ['storage.googleapis.com'] },
  {
    registry: 'registry.k8s.io',
    hosts: ['*.pkg.dev', 'storage.googleapis.com', 'prod-registry-k8s-io-*.s3.dualstack.*.amazonaws.com'],
  },
  { registry: 'mcr.microsoft.com', hosts: ['*.data.mcr.microsoft.com'] },
  { registry: '*.azurecr.io', hosts: ['*.blob.core.windows.net'] },
  { registry: 'public.ecr.aws', hosts: ['*.cloudfront.net'] },
  { registry: '*.dkr.ecr.*.amazonaws.com', hosts: ['*.s3.*.amazonaws.com', '*.s3.amazonaws.com'] },
  {
    registry: 'registry.gitlab.com',
    hosts: ['gitlab.com', 'cdn.registry.gitlab-static.net', 'storage.googleapis.com'],
  },
  { registry: 'registry.access.redhat.com', hosts: ['*.quay.io'] },
  { registry: 'registry.redhat.io', hosts: ['sso.redhat.com', '*.quay.io'] },
];

/** Whether a registry that patterns name (as a glob) may lead its clients to that host. */
export function leadsTo(registry: string, host: string): boolean {
  return COMPANIONS.some(
    (row) =>
      (matchesGlob(registry, row.registry) || matchesGlob(row.registry, registry)) &&
      row.hosts.some((glob) => matchesGlob(glob, host)),
  );
}

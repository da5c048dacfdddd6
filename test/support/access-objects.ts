import { baseRules, confinedTo } from '../../src/access/policy/granted-rules.ts';
import type { AccessConfig } from '../../src/api/access/template-spec.ts';

/** Valid parsed manifests of access; overrides replace whole fields of the spec. */
type Manifest = { apiVersion: string; kind: string; metadata: { name: string; namespace: string }; spec: object };
type Overrides = Readonly<Record<string, unknown>>;

const manifest = (kind: string, name: string, spec: object): Manifest => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind,
  metadata: { name, namespace: 'payments' },
  spec,
});

const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' };

/** `accessConfig` with the defaults that the schema sets. */
export const accessConfig: AccessConfig = {
  allowedGroups: ['devs'],
  defaultDuration: '1h',
  maxDuration: '24h',
  accessCommand: 'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
  grantTo: 'Requester',
};

/** `approvals` of a template that needs one vote. */
export const approvals: NonNullable<AccessConfig['approvals']> = {
  all: [{ name: 'peer', count: 1 }],
  pendingFor: '1h',
  serviceAccounts: false,
};

export const podTemplateManifest = (overrides: Overrides = {}): Manifest =>
  manifest('PodAccessTemplate', 'payments-shell', {
    accessConfig: { allowedGroups: ['devs'] },
    controllerTargetRef: target,
    ...overrides,
  });

export const execTemplateManifest = (overrides: Overrides = {}): Manifest =>
  manifest('ExecAccessTemplate', 'payments-exec', {
    accessConfig: { allowedGroups: ['devs'] },
    controllerTargetRef: target,
    ...overrides,
  });

export const podRequestManifest = (overrides: Overrides = {}): Manifest =>
  manifest('PodAccessRequest', 'debug', { templateName: 'payments-shell', ...overrides });

export const execRequestManifest = (overrides: Overrides = {}): Manifest =>
  manifest('ExecAccessRequest', 'look', { templateName: 'payments-exec', ...overrides });

export const grantOf = (overrides: Overrides = {}): Record<string, unknown> => ({
  template: { kind: 'PodAccessTemplate', name: 'payments-shell', uid: 't-1', generation: 3 },
  subjects: [{ kind: 'User', name: 'alice' }],
  pod: { name: 'debug-1a2b3c4d-access' },
  rules: confinedTo('debug-1a2b3c4d-access', baseRules),
  planHash: 'c0ffee',
  expiresAt: '2026-11-21T09:30:00Z',
  ...overrides,
});

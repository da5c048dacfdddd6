/** Conformance tests of Kubernetes that admission, discovery, controllers, or RBAC of an installation can break. */
export const conformance: readonly string[] = [
  'AdmissionWebhook',
  'AggregatedDiscovery',
  'CustomResourceDefinition resources',
  'CustomResourceDefinition Watch',
  'Discovery should',
  'FieldValidation',
  'Garbage collector',
  'Namespaces \\[Serial\\]',
  'OrderedNamespaceDeletion',
  'ResourceQuota should',
  'Servers with support for (API chunking|Table)',
  'ValidatingAdmissionPolicy',
  'Watchers should',
  'Deployment (deployment|RollingUpdateDeployment|RecreateDeployment|should run)',
  'ReplicaSet',
  'DisruptionController',
  'Job should (adopt|delete|manage)',
  'ServiceAccounts should',
  'SubjectReview',
  'Certificates API',
  'Kubectl client Kubectl (describe|expose|label|patch|replace|diff|server-side|run pod|api-versions)',
  'Lease lease API',
  'Pods should',
  'Pods Extended',
];

/** Tests of kubectl's streams: exec, attach, cp, port-forward, and logs. */
export const streams: readonly string[] = [
  'Kubectl client Simple pod',
  'Kubectl client Kubectl copy',
  'Kubectl Port forwarding',
  'Kubectl logs',
];

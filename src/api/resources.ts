import type { Resource } from './object.ts';

const resource = (group: string, version: string, plural: string, kind: string, namespaced = true): Resource => ({
  group,
  version,
  plural,
  kind,
  namespaced,
});

/** Of Kubernetes and related projects. Those of our kinds are in `src/api/<feature>/`. */
export const pods = resource('', 'v1', 'pods', 'Pod');
export const namespaces = resource('', 'v1', 'namespaces', 'Namespace', false);
export const secrets = resource('', 'v1', 'secrets', 'Secret');
export const configMaps = resource('', 'v1', 'configmaps', 'ConfigMap');
export const serviceAccounts = resource('', 'v1', 'serviceaccounts', 'ServiceAccount');
export const events = resource('events.k8s.io', 'v1', 'events', 'Event');
export const leases = resource('coordination.k8s.io', 'v1', 'leases', 'Lease');
export const roles = resource('rbac.authorization.k8s.io', 'v1', 'roles', 'Role');
export const roleBindings = resource('rbac.authorization.k8s.io', 'v1', 'rolebindings', 'RoleBinding');
export const clusterRoles = resource('rbac.authorization.k8s.io', 'v1', 'clusterroles', 'ClusterRole', false);
export const clusterRoleBindings = resource(
  'rbac.authorization.k8s.io',
  'v1',
  'clusterrolebindings',
  'ClusterRoleBinding',
  false,
);
export const deployments = resource('apps', 'v1', 'deployments', 'Deployment');
export const replicaSets = resource('apps', 'v1', 'replicasets', 'ReplicaSet');
export const statefulSets = resource('apps', 'v1', 'statefulsets', 'StatefulSet');
export const daemonSets = resource('apps', 'v1', 'daemonsets', 'DaemonSet');
export const services = resource('', 'v1', 'services', 'Service');
export const podDisruptionBudgets = resource('policy', 'v1', 'poddisruptionbudgets', 'PodDisruptionBudget');
export const networkPolicies = resource('networking.k8s.io', 'v1', 'networkpolicies', 'NetworkPolicy');
export const rollouts = resource('argoproj.io', 'v1alpha1', 'rollouts', 'Rollout');
export const customResourceDefinitions = resource(
  'apiextensions.k8s.io',
  'v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
  false,
);
export const apiServices = resource('apiregistration.k8s.io', 'v1', 'apiservices', 'APIService', false);
export const mutatingWebhookConfigurations = resource(
  'admissionregistration.k8s.io',
  'v1',
  'mutatingwebhookconfigurations',
  'MutatingWebhookConfiguration',
  false,
);
export const validatingWebhookConfigurations = resource(
  'admissionregistration.k8s.io',
  'v1',
  'validatingwebhookconfigurations',
  'ValidatingWebhookConfiguration',
  false,
);
export const validatingAdmissionPolicies = resource(
  'admissionregistration.k8s.io',
  'v1',
  'validatingadmissionpolicies',
  'ValidatingAdmissionPolicy',
  false,
);
export const validatingAdmissionPolicyBindings = resource(
  'admissionregistration.k8s.io',
  'v1',
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
  false,
);

/** Reasons of conditions that kube-bind's konnector says, word for word; programs and people look for them. */
export const kubeBindReasons = [
  'APIServiceBindingNotFound',
  'APIServiceExportFailed',
  'APIServiceExportNotFound',
  'BoundSchemaFetchFailed',
  'BoundSchemasNotValid',
  'ClusterBindingUpdateFailed',
  'CustomResourceDefinitionCreateFailed',
  'CustomResourceDefinitionUpdateFailed',
  'ForeignCustomResourceDefinition',
  'InformerSyncTimeout',
  'KubeconfigSecretInvalid',
  'KubeconfigSecretNotFound',
  'ListExportsFailed',
  'NA',
  'ParseError',
  'ProviderSecretInvalid',
  'ProviderSecretNotFound',
  'SyncErrors',
  'Unknown',
] as const;

/** Those of them that have no cause here: a client is made before anything is bound, and bindings come from a watch. @testing */
export const unusedReasons = ['ListBindingsFailed', 'ProviderClientError'] as const;

/** What kube-bind's has no word for. */
export const ownReasons = [
  'APIServiceBindingInvalid',
  'APIServiceExportInvalid',
  'AnotherKonnector',
  'CustomResourceDefinitionNamesNotAccepted',
  'CustomResourceDefinitionNotWritten',
  'CustomResourceDefinitionTerminating',
  'ExportsVanished',
  'ForeignConsumerSecret',
  'InformersSyncing',
  'InvalidClaimableAnnotation',
  'InvalidPermissionClaim',
  'ObjectsNotInSync',
  'ResourceNotAllowed',
  'Unbinding',
] as const;

/** All that a condition of ours may give as its reason. */
export type BindReason = (typeof kubeBindReasons)[number] | (typeof ownReasons)[number];

/** Condition reasons of kube-bind's konnector, because clients match on them. */
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

/** Of kube-bind; drawbridge never sets them. @testing */
export const unusedReasons = ['ListBindingsFailed', 'ProviderClientError'] as const;

/** drawbridge adds these. */
export const addedReasons = [
  'APIServiceBindingInvalid',
  'APIServiceExportInvalid',
  'CustomResourceDefinitionNamesNotAccepted',
  'CustomResourceDefinitionNotWritten',
  'CustomResourceDefinitionTerminating',
  'ExportsVanished',
  'InformersSyncing',
  'InvalidClaimableAnnotation',
  'InvalidPermissionClaim',
  'ObjectsNotInSync',
  'ResourceNotAllowed',
  'Unbinding',
  'WatchRefused',
] as const;

export type BindReason = (typeof kubeBindReasons)[number] | (typeof addedReasons)[number];

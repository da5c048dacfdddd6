import type { builtInComponents } from '../../api/inventory/names.ts';
import type { Component } from '../ports.ts';
import { byocComponent } from './byoc.ts';
import { clusterComponent } from './cluster.ts';
import { connectivityProxyComponent } from './connectivity-proxy.ts';
import type { ComponentsDeps } from './inputs.ts';
import { kubeconfigComponent } from './kubeconfig.ts';
import { networkComponent } from './network.ts';

/** By the name that `endpoint.inProcess` uses. */
export function referenceComponents(deps: ComponentsDeps): ReadonlyMap<string, Component> {
  const components: Readonly<Record<(typeof builtInComponents)[number], Component>> = {
    network: networkComponent(deps),
    cluster: clusterComponent(deps),
    kubeconfig: kubeconfigComponent(deps),
    byoc: byocComponent(deps),
    'connectivity-proxy': connectivityProxyComponent(deps),
  };
  return new Map(Object.entries(components));
}

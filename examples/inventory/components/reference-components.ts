import { byocComponent } from './byoc.ts';
import { clusterComponent } from './cluster.ts';
import { connectivityProxyComponent } from './connectivity-proxy.ts';
import type { ComponentsDeps } from './inputs.ts';
import { kubeconfigComponent } from './kubeconfig.ts';
import { networkComponent } from './network.ts';
import type { Component } from './sdk/contract.ts';

/** By name. */
export function referenceComponents(deps: ComponentsDeps): ReadonlyMap<string, Component> {
  const components = [
    networkComponent(deps),
    clusterComponent(deps),
    kubeconfigComponent(deps),
    byocComponent(deps),
    connectivityProxyComponent(deps),
  ];
  return new Map(components.map((component) => [component.name, component]));
}

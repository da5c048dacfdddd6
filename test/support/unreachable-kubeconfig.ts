/** A kubeconfig whose API server does not answer. */
export const unreachableKubeconfig = `
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: none, user: {token: none}}]
`;

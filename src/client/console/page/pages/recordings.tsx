export function Recordings() {
  return <h1>Recordings</h1>;
}

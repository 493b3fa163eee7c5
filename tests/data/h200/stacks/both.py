import torch
from model import Net


def step(net, optimizer, x, host):
    optimizer.zero_grad(set_to_none=True)
    x = x.copy_(host)
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    host = torch.randn(256, 512)
    x = host.cuda()
    eager = Net().cuda()
    fused = torch.compile(Net().cuda())
    optimizers = [torch.optim.AdamW(net.parameters()) for net in (eager, fused)]
    for net, optimizer in zip((eager, fused), optimizers, strict=True):
        for _ in range(3):
            step(net, optimizer, x, host)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for number, net in enumerate((eager, fused)):
        torch.cuda.nvtx.range_push(f"step {number}")
        step(net, optimizers[number], x, host)
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


main()


# The recording beside it names the lines of this file: keep them where they are.
# mypy: ignore-errors

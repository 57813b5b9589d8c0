// Functions of Linux for the processes of a group.
#pragma once

#include <sys/types.h>

namespace hydra {

// Asks the kernel to kill this process when its parent ends; exits at once if `parent` has ended.
void die_with_parent(pid_t parent);

int thread_count();

// A pipe; the destructor closes both ends.
class Pipe {
  public:
    Pipe();
    ~Pipe() {
        close_read();
        close_write();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    [[nodiscard]] int read_end() const { return ends_[0]; }
    [[nodiscard]] int write_end() const { return ends_[1]; }
    void close_read() { close_end(0); }
    void close_write() { close_end(1); }

  private:
    void close_end(int which);
    int ends_[2];
};

}  // namespace hydra

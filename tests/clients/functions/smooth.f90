! SPDX-License-Identifier: Apache-2.0
! Functions of a legacy solver in Fortran: arguments by address, the first index
! is contiguous.
subroutine wave_smooth(u, w, columns, rows, weight)
  implicit none
  integer, intent(in) :: columns, rows
  real, intent(in) :: u(columns, rows), weight
  real, intent(inout) :: w(columns, rows)
  integer :: i, j
  do j = 2, rows - 1
    do i = 1, columns
      w(i, j) = (1 - weight) * u(i, j) + weight * 0.5 * (u(i, j - 1) + u(i, j + 1))
    end do
  end do
  w(:, 1) = u(:, 1)
  w(:, rows) = u(:, rows)
end subroutine
